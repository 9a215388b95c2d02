SELECT last_page, pages
FROM pgsimhash.expire_batch(
    %(collection)s::text, %(seen_before)s::timestamptz, %(after_page)s::bigint, %(batch)s::integer
)
