-- Lookups that answer with pages; those that answer with simhashes are in layout.sql.

CREATE FUNCTION pgsimhash.near_pages(
    url text, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    asked constant text := near_pages.url;
    own_id constant integer := pgsimhash._id_of(collection);
    present record;
BEGIN
    SELECT p.simhash, p.sketch_high, p.sketch_low INTO present
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = own_id AND p.url = asked
    ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
    LIMIT 1;
    IF FOUND THEN
        RETURN QUERY
        SELECT *
        FROM pgsimhash._near_pages(
            collection, present.simhash, present.sketch_high, present.sketch_low,
            near_pages.distance, asked, NULL
        );
    ELSE
        PERFORM pgsimhash._check_lookup(
            coalesce(near_pages.distance, c.default_distance), c.layout, false
        )
        FROM pgsimhash.collections AS c WHERE c.collection_id = own_id;
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_pages(text, integer, text) IS
    'Every other page whose present version is within so many bits of that of a URL, nearest first; '
    'by default within the collection''s distance, and none for a URL that is not known.';

CREATE FUNCTION pgsimhash.near_pages(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY
    SELECT *
    FROM pgsimhash._near_pages(
        collection, near_pages.simhash, NULL, NULL, near_pages.distance, NULL, NULL
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.near_pages(bigint, integer, text) IS
    'Every page whose present version is within so many bits of a simhash, nearest first; by default '
    'within the collection''s distance.';

-- Internal: for the functions above and for the package, and may change with any release.

-- Of the pages of each simhash the first ones are enough, so that a simhash with ten thousand of them
-- costs a small question little. BETWEEN is there for the order that only one index has.
CREATE FUNCTION pgsimhash._near_pages(
    collection text, simhash bigint, sketch_high bigint, sketch_low bigint, distance integer,
    own_url text, most bigint
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    sought constant bigint := _near_pages.simhash;
    own_high constant bigint := _near_pages.sketch_high;
    own_low constant bigint := _near_pages.sketch_low;
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
            AND pgsimhash._verified(m.distance, k.sketch_high, k.sketch_low, own_high, own_low)
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

COMMENT ON FUNCTION pgsimhash._near_pages(
    text, bigint, bigint, bigint, integer, text, bigint
) IS 'The nearest pages to a simhash, but for one URL; their sketches count too.';
