-- page --
-- The present version of a page; a row of NULLs if the page is unknown, and no row if
-- the collection does not exist.
SELECT
    p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
    p.html_bytes, original.url AS duplicate_of, p.distance, p.structure, p.markdown,
    greatest(p.fetched_at, s.seen_at) AS seen_at, p.run_id
FROM pgsimhash.collections AS c
LEFT JOIN LATERAL (
    SELECT n.*
    FROM pgsimhash.pages AS n
    WHERE n.collection_id = c.collection_id AND n.url = %(url)s
    ORDER BY n.page_id DESC
    LIMIT 1
) AS p ON true
LEFT JOIN pgsimhash.pages AS original
    ON original.collection_id = p.collection_id AND original.page_id = p.duplicate_of
LEFT JOIN pgsimhash.last_seen AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
WHERE c.name = %(collection)s

-- sample --
-- A sample of the present versions, reproducible by the seed.
SELECT p.url, p.simhash, p.title
FROM pgsimhash.pages AS p
WHERE p.collection_id = %(collection_id)s
    AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS newer
        WHERE newer.collection_id = p.collection_id
            AND newer.url = p.url
            AND newer.page_id > p.page_id
    )
ORDER BY pg_catalog.hashint8extended(p.page_id, %(seed)s::bigint), p.page_id
LIMIT %(size)s

-- known_fingerprints --
-- The fingerprints of the present versions of some pages.
SELECT q.url, p.simhash, p.signature_high, p.signature_low, p.title
FROM pg_catalog.unnest(%(urls)s::text[]) AS q (url)
CROSS JOIN LATERAL (
    SELECT n.*
    FROM pgsimhash.pages AS n
    WHERE n.collection_id = %(collection_id)s AND n.url = q.url
    ORDER BY n.collection_id DESC, n.url DESC, n.page_id DESC
    LIMIT 1
) AS p

-- versions --
-- All versions of a page in order of arrival.
SELECT p.url, p.simhash, p.fetched_at, greatest(p.fetched_at, s.seen_at) AS seen_at, p.title,
    p.structure, p.html_bytes, CASE WHEN %(markdown)s THEN p.markdown END AS markdown,
    p.text_digest
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.last_seen AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
WHERE p.collection_id = %(collection_id)s AND p.url = %(url)s
ORDER BY p.page_id

-- explained_page --
-- The present version of a page, with the values for an explanation.
SELECT url, simhash, fetched_at, title, structure, signature_high, signature_low, markdown
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND url = %(url)s
ORDER BY page_id DESC
LIMIT 1

-- simhash_slice --
SELECT pgsimhash._simhash_slice(
    %(collection_id)s::integer, %(number)s::integer, %(slices)s::integer
)

-- should_fetch --
SELECT pgsimhash.should_fetch(%(url)s::text, %(older_than)s::interval, %(collection)s::text)
