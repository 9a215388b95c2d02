SELECT last_page, pages
FROM pgsimhash.expire_batch(
    %(collection)s::text, %(older_than)s::interval, %(after_page)s::bigint, %(batch)s::integer
)
