-- find --
-- Every match with its first page, optionally of those on a host or since a time. A match
-- beyond 5 bits must have a signature like the query's, if both have one.
-- BETWEEN requires an order that only one index has: if many pages share a simhash, the
-- planner would choose another one. No index supports IS NOT DISTINCT FROM: the planner would read
-- all pages of the host.
SELECT m.simhash, m.distance, p.url, p.title
FROM pgsimhash.near_duplicates(
    %(simhash)s::bigint, %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE name = %(collection)s AND scheme = %(scheme)s)
) AS m
JOIN pgsimhash.collections AS c ON c.name = %(collection)s
CROSS JOIN LATERAL (
    SELECT url, title
    FROM pgsimhash.pages
    WHERE collection_id = c.collection_id
        AND simhash BETWEEN m.simhash AND m.simhash
        AND host IS NOT DISTINCT FROM coalesce(%(host)s::text, host)
        AND (%(since)s::timestamptz IS NULL OR fetched_at >= %(since)s)
        AND pgsimhash._verified(
            m.distance, signature_high, signature_low, %(signature_high)s::bigint, %(signature_low)s::bigint
        )
    ORDER BY simhash, page_id
    LIMIT 1
) AS p
ORDER BY m.distance, m.simhash
LIMIT %(limit)s

-- find_each --
-- Like find, for several simhashes at once and without conditions on pages.
SELECT m.query_number - 1, m.simhash, m.distance, p.url, p.title
FROM pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE name = %(collection)s AND scheme = %(scheme)s)
) AS m
LEFT JOIN pgsimhash.collections AS c ON c.name = %(collection)s
LEFT JOIN LATERAL (
    SELECT url, title
    FROM pgsimhash.pages
    WHERE collection_id = c.collection_id AND simhash BETWEEN m.simhash AND m.simhash
    ORDER BY simhash, page_id
    LIMIT 1
) AS p ON true
ORDER BY m.query_number, m.distance, m.simhash

-- near_pages --
-- Every page near a simhash.
SELECT url, title, simhash, distance, fetched_at, page_id
FROM pgsimhash._near_pages(
    (SELECT name FROM pgsimhash.collections WHERE name = %(collection)s AND scheme = %(scheme)s),
    %(simhash)s::bigint, %(signature_high)s::bigint, %(signature_low)s::bigint, %(distance)s::integer,
    NULL, %(limit)s::bigint
)
ORDER BY distance, page_id

-- near_pages_of_url --
-- Every other page near the present version of a URL, a row of NULLs if there is none, and no
-- row if the URL is unknown.
SELECT n.url, n.title, n.simhash, n.distance, n.fetched_at, n.page_id
FROM (
    SELECT
        c.name, p.simhash,
        CASE WHEN %(verify)s THEN p.signature_high END AS signature_high,
        CASE WHEN %(verify)s THEN p.signature_low END AS signature_low
    FROM pgsimhash.collections AS c
    JOIN pgsimhash.pages AS p USING (collection_id)
    WHERE c.name = %(collection)s AND c.scheme = %(scheme)s AND p.url = %(url)s
    ORDER BY p.page_id DESC
    LIMIT 1
) AS q
LEFT JOIN LATERAL pgsimhash._near_pages(
    q.name, q.simhash, q.signature_high, q.signature_low, %(distance)s::integer, %(url)s,
    %(limit)s::bigint
) AS n ON true
ORDER BY n.distance, n.page_id

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
