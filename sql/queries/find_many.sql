SELECT query_number - 1, simhash, distance
FROM pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE collection_id = %(collection_id)s)
)
ORDER BY query_number, distance, simhash
