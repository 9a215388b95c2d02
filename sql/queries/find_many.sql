SELECT query_number - 1, simhash, distance
FROM pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer, %(collection)s::text
)
ORDER BY query_number, distance, simhash
