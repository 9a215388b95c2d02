-- draw_run --
SELECT pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('pgsimhash.runs', 'run_id'))

-- run_pages --
SELECT pg_catalog.sum(pages) FROM pgsimhash.runs WHERE run_id = %(run_id)s

-- page_ids --
SELECT pg_catalog.nextval(s.drawn)
FROM (
    SELECT pg_catalog.pg_get_serial_sequence('pgsimhash.pages', 'page_id')::pg_catalog.regclass
        AS drawn
    OFFSET 0
) AS s
CROSS JOIN pg_catalog.generate_series(1, %(count)s)

-- add_simhashes --
SELECT pgsimhash.add_simhashes(%(collection)s::text, %(simhashes)s::bigint[])

-- made_alike --
SELECT made FROM pgsimhash._made_alike(%(collection_id)s::integer) AS made LIMIT 1

-- add_pages --
-- An original that someone deleted since it was looked up is none.
INSERT INTO pgsimhash.pages (
    collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url,
    language, features, tokens, html_bytes, html_digest, text_digest, structure,
    sketch_high, sketch_low, markdown, duplicate_of, distance
)
SELECT
    %(collection_id)s, p.page_id, p.url, p.simhash, coalesce(p.fetched_at, pg_catalog.now()),
    p.run_id, p.title, p.canonical_url, p.language, p.features,
    p.tokens, p.html_bytes, p.html_digest, p.text_digest, p.structure, p.sketch_high, p.sketch_low,
    p.markdown,
    CASE WHEN NOT o.gone THEN p.duplicate_of END,
    CASE WHEN NOT o.gone THEN p.distance END
FROM unnest(
    %(page_id)s::bigint[], %(url)s::text[], %(simhash)s::bigint[],
    %(fetched_at)s::timestamptz[], %(title)s::text[], %(canonical_url)s::text[],
    %(language)s::text[], %(features)s::integer[], %(tokens)s::integer[],
    %(html_bytes)s::integer[], %(html_digest)s::bytea[], %(text_digest)s::bigint[],
    %(structure)s::bigint[],
    %(sketch_high)s::bigint[], %(sketch_low)s::bigint[], %(markdown)s::text[],
    %(duplicate_of)s::bigint[], %(distance)s::smallint[], %(run_id)s::bigint[]
) AS p (
    page_id, url, simhash, fetched_at, title, canonical_url, language, features, tokens, html_bytes,
    html_digest, text_digest, structure, sketch_high, sketch_low, markdown, duplicate_of, distance,
    run_id
)
CROSS JOIN LATERAL (
    SELECT p.duplicate_of IS NOT NULL AND p.duplicate_of < %(first_page)s AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS k
        WHERE k.collection_id = %(collection_id)s AND k.page_id = p.duplicate_of
    ) AS gone
    OFFSET 0
) AS o

-- see_pages --
SELECT pgsimhash._see_pages(
    %(collection_id)s::integer, %(page_ids)s::bigint[], %(seen_at)s::timestamptz[]
)

-- count_batch --
SELECT pgsimhash._count_batch(
    %(collection_id)s::integer, %(run_id)s::bigint, %(what)s::text, %(pages)s::bigint,
    %(new)s::bigint, %(duplicates)s::bigint, %(updated)s::bigint, %(unchanged)s::bigint,
    %(first_page)s::bigint, %(last_page)s::bigint
)
