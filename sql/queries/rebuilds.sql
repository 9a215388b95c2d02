-- begin_rebuild --
SELECT pgsimhash._begin_rebuild(%(collection)s::text, %(into)s::text)

-- end_rebuild --
SELECT pg_catalog.set_config('simhashes.rebuilt', '', true)

-- count_versions --
SELECT pg_catalog.count(*) FROM pgsimhash.pages WHERE collection_id = %(source_id)s

-- next_versions --
-- Versions of pages, in order of arrival, up to a number of bytes.
SELECT
    p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
    p.html_bytes, p.structure, p.signature_high, p.signature_low,
    CASE WHEN %(markdown)s THEN p.markdown END AS markdown,
    p.tokens, p.html_digest, p.text_digest, p.run_id
FROM (
    SELECT *, pg_catalog.sum(pg_catalog.octet_length(n.markdown)) OVER (
        ORDER BY n.page_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS bytes_before
    FROM (
        SELECT *
        FROM pgsimhash.pages
        WHERE collection_id = %(source_id)s AND page_id > %(after_page)s
        ORDER BY page_id
        LIMIT %(batch)s
    ) AS n
) AS p
WHERE coalesce(p.bytes_before < %(bytes)s, true)
ORDER BY p.page_id

-- copy_rows --
SELECT pgsimhash._copy_rows(
    %(source_id)s::integer, %(collection_id)s::integer, %(tables)s::text[]
)

-- copy_last_seen --
INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at)
SELECT p.collection_id, p.page_id, s.seen_at
FROM pgsimhash.last_seen AS s
JOIN pgsimhash.pages AS p ON p.collection_id = %(collection_id)s AND p.page_id = s.page_id
WHERE s.collection_id = %(source_id)s
