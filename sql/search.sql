-- Lookups of pages.

CREATE FUNCTION pgsimhash.near_pages(
    url text, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4 SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    asked constant text := near_pages.url;
    own_id constant integer := pgsimhash._id_of(collection);
    present record;
BEGIN
    SELECT p.simhash, p.signature_high, p.signature_low INTO present
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = own_id AND p.url = asked
    ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
    LIMIT 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'collection "%" has no page at %', collection, coalesce(asked, 'NULL')
            USING ERRCODE = 'PS020', HINT = 'Ingest the page first, or correct the URL.';
    END IF;
    RETURN QUERY SELECT * FROM pgsimhash._near_pages(
        collection, present.simhash, present.signature_high, present.signature_low,
        near_pages.distance, asked, NULL
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.near_pages(text, integer, text) IS
    'Every other page within a distance of the page at a URL, by default the collection''s; '
    'present versions, nearest first. An error for an unknown URL.';

CREATE FUNCTION pgsimhash.near_pages(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgsimhash._near_pages(
        collection, near_pages.simhash, NULL, NULL, near_pages.distance, NULL, NULL
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.near_pages(bigint, integer, text) IS
    'Every page within a distance of a simhash, by default the collection''s; present versions, '
    'nearest first.';

-- Only the first pages of each simhash are read, so that a limit is cheap even if ten thousand
-- pages share a simhash. BETWEEN requires an order that only one index has.
CREATE FUNCTION pgsimhash._near_pages(
    collection text, simhash bigint, signature_high bigint, signature_low bigint, distance integer,
    own_url text, most bigint
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4 SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
    SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    sought constant bigint := _near_pages.simhash;
    own_high constant bigint := _near_pages.signature_high;
    own_low constant bigint := _near_pages.signature_low;
BEGIN
    RETURN QUERY
    SELECT p.url, m.distance, m.simhash, p.title, p.fetched_at, p.page_id
    FROM pgsimhash.near_duplicates(sought, _near_pages.distance, collection) AS m
    CROSS JOIN LATERAL (
        SELECT k.url, k.title, k.fetched_at, k.page_id
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = own_id
            AND k.simhash BETWEEN m.simhash AND m.simhash
            AND (own_url IS NULL OR k.url <> own_url)
            AND pgsimhash._verified(m.distance, k.signature_high, k.signature_low, own_high, own_low)
            AND NOT EXISTS (
                SELECT FROM pgsimhash.pages AS newer
                WHERE newer.collection_id = k.collection_id
                    AND newer.url = k.url
                    AND newer.page_id > k.page_id
            )
        ORDER BY k.simhash, k.page_id
        LIMIT most
    ) AS p
    ORDER BY m.distance, p.page_id
    LIMIT most;
END
$$;
