-- find --
-- Every match with the page that brought it first, of those on the host and since the time asked
-- for. A match beyond trusted_distance must have a sketch like the query's, where both have one.
-- BETWEEN is there for the order that only one index has: where many pages share a simhash, the
-- planner would rather walk another one.
SELECT m.simhash, m.distance, p.url, p.title
FROM pgsimhash.near_duplicates(
    %(simhash)s::bigint, %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE name = %(collection)s AND scheme = %(scheme)s)
) AS m
LEFT JOIN pgsimhash.collections AS c ON c.name = %(collection)s
LEFT JOIN LATERAL (
    SELECT url, title
    FROM pgsimhash.pages
    WHERE collection_id = c.collection_id
        AND simhash BETWEEN m.simhash AND m.simhash
        AND (%(host)s::text IS NULL OR host = %(host)s)
        AND (%(since)s::timestamptz IS NULL OR fetched_at >= %(since)s)
        AND (
            m.distance <= %(trusted_distance)s
            OR pgsimhash.sketch_distance(
                sketch_high, sketch_low, %(sketch_high)s::bigint, %(sketch_low)s::bigint
            ) > %(sketch_distance)s IS NOT TRUE
        )
    ORDER BY simhash, page_id
    LIMIT 1
) AS p ON true
LEFT JOIN LATERAL (
    SELECT true AS found
    FROM pgsimhash.pages
    WHERE p.url IS NULL
        AND collection_id = c.collection_id
        AND simhash BETWEEN m.simhash AND m.simhash
    ORDER BY simhash
    LIMIT 1
) AS other ON true
WHERE p.url IS NOT NULL
    OR %(host)s::text IS NULL AND %(since)s::timestamptz IS NULL AND other.found IS NULL
ORDER BY m.distance, m.simhash
LIMIT %(limit)s

-- find_many --
SELECT query_number - 1, simhash, distance
FROM pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE name = %(collection)s AND scheme = %(scheme)s)
)
ORDER BY query_number, distance, simhash

-- exists --
SELECT pgsimhash.has_near_duplicate(
    %(simhash)s::bigint, %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE name = %(collection)s AND scheme = %(scheme)s)
)
