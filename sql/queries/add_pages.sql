-- An original that someone deleted since it was looked up is none.
INSERT INTO pgsimhash.pages (
    collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url,
    language, features, words, html_bytes, html_digest, structure, sketch_high, sketch_low,
    markdown, duplicate_of, distance
)
SELECT
    %(collection_id)s, p.page_id, p.url, p.simhash, coalesce(p.fetched_at, now()),
    %(run_id)s, p.title, p.canonical_url, p.language, p.features,
    p.words, p.html_bytes, p.html_digest, p.structure, p.sketch_high, p.sketch_low, p.markdown,
    CASE
        WHEN p.duplicate_of >= %(first_page)s OR EXISTS (
            SELECT FROM pgsimhash.pages AS o
            WHERE o.collection_id = %(collection_id)s AND o.page_id = p.duplicate_of
        ) THEN p.duplicate_of
    END,
    p.distance
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
