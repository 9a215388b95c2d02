-- All that is known about the pages of a batch, in one round trip: the nearest match of each, the
-- versions and marks of their URLs, and the version of the policies.
SELECT
    n.query_number, n.page_id, n.url, n.distance, n.html_digest, n.copies,
    NULL::bigint, NULL::bigint, NULL::text[], NULL::text[], NULL::bigint
FROM pgsimhash.nearest(
    %(collection_id)s::integer, %(collection_ids)s::integer[], %(before_page)s::bigint,
    %(simhashes)s::bigint[], %(sketch_high)s::bigint[], %(sketch_low)s::bigint[],
    %(hosts)s::text[], %(since)s::timestamptz[], %(oldest)s::bigint[],
    %(keep_first)s::integer[], %(own_urls)s::text[], %(distance)s::integer,
    %(trusted_distance)s::integer, %(sketch_distance)s::integer
) AS n
UNION ALL
SELECT
    NULL, k.page_id, k.url, NULL, NULL, NULL, k.simhash, k.first_page, k.same, k.different, NULL
FROM pgsimhash.known_pages(
    %(collection_id)s::integer, %(before_page)s::bigint, %(urls)s::text[]
) AS k
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, c.policies_version
FROM pgsimhash.collections AS c
WHERE c.collection_id = %(collection_id)s
