-- An original that someone deleted since it was looked up is none.
INSERT INTO pgsimhash.pages (
    collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url,
    language, features, words, html_bytes, html_digest, structure, sketch_high, sketch_low,
    markdown, duplicate_of, distance
)
SELECT
    %(collection_id)s, p.page_id, p.url, p.simhash, coalesce(p.fetched_at, pg_catalog.now()),
    %(run_id)s, p.title, p.canonical_url, p.language, p.features,
    p.words, p.html_bytes, p.html_digest, p.structure, p.sketch_high, p.sketch_low, p.markdown,
    CASE WHEN NOT o.gone THEN p.duplicate_of END,
    CASE WHEN NOT o.gone THEN p.distance END
FROM unnest(
    %(page_id)s::bigint[], %(url)s::text[], %(simhash)s::bigint[],
    %(fetched_at)s::timestamptz[], %(title)s::text[], %(canonical_url)s::text[],
    %(language)s::text[], %(features)s::integer[], %(words)s::integer[],
    %(html_bytes)s::integer[], %(html_digest)s::bytea[], %(structure)s::bigint[],
    %(sketch_high)s::bigint[], %(sketch_low)s::bigint[], %(markdown)s::text[],
    %(duplicate_of)s::bigint[], %(distance)s::smallint[]
) AS p (
    page_id, url, simhash, fetched_at, title, canonical_url, language, features, words, html_bytes,
    html_digest, structure, sketch_high, sketch_low, markdown, duplicate_of, distance
)
CROSS JOIN LATERAL (
    SELECT p.duplicate_of IS NOT NULL AND p.duplicate_of < %(first_page)s AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS k
        WHERE k.collection_id = %(collection_id)s AND k.page_id = p.duplicate_of
    ) AS gone
    OFFSET 0
) AS o
