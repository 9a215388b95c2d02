INSERT INTO pgsimhash.pages (
    collection_id, page_id, url, simhash, fetched_at, title, canonical_url, language,
    features, html_bytes, structure, sketch_high, sketch_low, markdown, duplicate_of,
    distance
)
SELECT
    %(collection_id)s, page_id, url, simhash, coalesce(fetched_at, now()), title,
    canonical_url, language, features, html_bytes, structure, sketch_high, sketch_low,
    markdown, duplicate_of, distance
FROM unnest(
    %(page_id)s::bigint[], %(url)s::text[], %(simhash)s::bigint[],
    %(fetched_at)s::timestamptz[], %(title)s::text[], %(canonical_url)s::text[],
    %(language)s::text[], %(features)s::integer[], %(html_bytes)s::integer[],
    %(structure)s::bigint[], %(sketch_high)s::bigint[], %(sketch_low)s::bigint[],
    %(markdown)s::text[],
    %(duplicate_of)s::bigint[], %(distance)s::smallint[]
) AS p (
    page_id, url, simhash, fetched_at, title, canonical_url, language, features, html_bytes,
    structure, sketch_high, sketch_low, markdown, duplicate_of, distance
)
