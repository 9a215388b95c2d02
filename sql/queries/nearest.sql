SELECT query_number, distance, page_id, url, html_digest
FROM pgsimhash.nearest(
    %(collection_id)s::integer, %(collection_ids)s::integer[], %(collections)s::text[],
    %(simhashes)s::bigint[], %(sketch_high)s::bigint[], %(sketch_low)s::bigint[],
    %(hosts)s::text[], %(since)s::timestamptz[], %(oldest)s::bigint[], %(apart)s::jsonb[],
    %(urls)s::text[], %(distance)s::integer, %(trusted_distance)s::integer,
    %(sketch_distance)s::integer
)
