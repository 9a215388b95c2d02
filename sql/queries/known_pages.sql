SELECT url, page_id, simhash, first_page, same, different
FROM pgsimhash.known_pages(
    %(collection_id)s::integer, %(before_page)s::bigint, %(urls)s::text[]
)
