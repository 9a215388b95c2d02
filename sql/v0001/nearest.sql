-- For each query simhash the nearest known one in some collections; among equals the one whose
-- page came first. The page has to be on the query's host, as young and as new as asked for, and
-- neither marked as different nor found to duplicate one that is. A match beyond trusted_distance
-- must have a sketch like the query's, where both have one.
-- Planned once, for planning takes longer than the lookup. BETWEEN is there for the order that only
-- one index has: a plan made while the table is small must not walk another one later.
CREATE FUNCTION pgsimhash.nearest(
    own_id integer, compared_ids integer[], compared text[], queries bigint[],
    sketches_high bigint[], sketches_low bigint[], hosts text[], sinces timestamptz[],
    oldest_pages bigint[], aparts jsonb[], urls text[], max_distance integer,
    trusted_distance integer, largest_sketch_distance integer
) RETURNS TABLE (
    query_number bigint, distance integer, page_id bigint, url text, html_digest bytea
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT DISTINCT ON (m.query_number)
        m.query_number, m.distance,
        CASE WHEN c.collection_id = own_id THEN p.page_id END,
        p.url, p.html_digest
    FROM unnest(compared_ids, compared) AS c (collection_id, name)
    CROSS JOIN LATERAL pgsimhash.near_duplicates(
        queries, max_distance, c.name
    ) AS m
    JOIN unnest(
        sketches_high, sketches_low, hosts,
        sinces, oldest_pages, aparts, urls
    ) WITH ORDINALITY AS q (sketch_high, sketch_low, host, since, oldest, apart, url, query_number)
        USING (query_number)
    LEFT JOIN LATERAL (
        SELECT k.page_id, k.url, k.html_digest, k.sketch_high, k.sketch_low
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = c.collection_id
            AND k.simhash BETWEEN m.simhash AND m.simhash
            AND k.page_id >= q.oldest
            AND (q.host IS NULL OR k.host = q.host)
            AND (q.since IS NULL OR k.fetched_at >= q.since)
            AND (
                q.apart IS NULL
                OR k.url = q.url
                OR NOT q.apart ? k.url AND NOT EXISTS (
                    SELECT FROM pgsimhash.pages AS o
                    WHERE o.collection_id = k.collection_id
                        AND o.page_id = k.duplicate_of
                        AND q.apart ? o.url
                )
            )
        ORDER BY k.simhash, k.page_id
        LIMIT 1
    ) AS p ON true
    WHERE (
            p.page_id IS NOT NULL
            OR (q.host IS NULL AND q.since IS NULL AND q.oldest = 0 AND q.apart IS NULL)
        )
        AND (
            m.distance <= trusted_distance
            OR pgsimhash.sketch_distance(p.sketch_high, p.sketch_low, q.sketch_high, q.sketch_low)
                > largest_sketch_distance IS NOT TRUE
        )
    ORDER BY m.query_number, m.distance, p.page_id NULLS LAST, m.simhash;
END
$$;

COMMENT ON FUNCTION pgsimhash.nearest(
    integer, integer[], text[], bigint[], bigint[], bigint[], text[], timestamptz[], bigint[],
    jsonb[], text[], integer, integer, integer
) IS 'For each query the nearest known simhash that meets what is asked of its page.';
