-- Lookups. The first one is for the default layout, 22+21+21; layout.sql renders it for other
-- layouts, and the lookups of many simhashes at once. The other functions return pages.

-- Manku, Jain, Das Sarma (WWW 2007), section 3. Two simhashes within max_distance bits differ in
-- few bits of at least one bit block. So for each permutation the lookup visits all prefixes that
-- differ from the query's in at most radii[n] bits, and compares the simhashes that it finds there.
-- A match is reported once, by the first permutation whose probes reach it. The settings keep one
-- generic plan of index scans: the planner cannot estimate arrays of probes, and a new plan takes
-- longer than the lookup. ROWS keeps the plans of surrounding statements generic too.
CREATE FUNCTION pgsimhash.near_duplicates(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.match
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
    SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0
    ROWS 4
    AS $$
#variable_conflict use_column
DECLARE
    given_distance constant integer := near_duplicates.distance;
    own_id integer;
    own_layout text;
    max_distance integer;
    radii integer[];
    query constant bigint := near_duplicates.simhash;
    own_prefix bigint;
    probes_1 bigint[];
    probes_2 bigint[];
    probes_3 bigint[];
BEGIN
    SELECT c.collection_id, c.layout, coalesce(given_distance, c.default_distance)
    INTO own_id, own_layout, max_distance
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    IF own_layout IS DISTINCT FROM '22+21+21' THEN
        RETURN QUERY EXECUTE
            'SELECT * FROM ' || pgsimhash._name_for(collection, 'near_duplicates') || '($1, $2, $3)'
            USING query, given_distance, collection;
        RETURN;
    END IF;
    radii := pgsimhash.radii(max_distance);
    IF radii IS NULL OR query IS NULL THEN
        PERFORM pgsimhash._check_lookup(max_distance, '22+21+21', query IS NULL);
    END IF;
    own_prefix := pgsimhash.prefix(query, 1, own_id);
    IF radii[1] = 0 THEN
        probes_1 := ARRAY[own_prefix];
    ELSE
        probes_1 := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(1, radii[1])) AS flip
        );
    END IF;
    own_prefix := pgsimhash.prefix(query, 2, own_id);
    IF radii[2] = 0 THEN
        probes_2 := ARRAY[own_prefix];
    ELSE
        probes_2 := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(2, radii[2])) AS flip
        );
    END IF;
    own_prefix := pgsimhash.prefix(query, 3, own_id);
    IF radii[3] = 0 THEN
        probes_3 := ARRAY[own_prefix];
    ELSE
        probes_3 := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(3, radii[3])) AS flip
        );
    END IF;
    RETURN QUERY
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.prefix_1 = ANY (probes_1)
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
        UNION ALL
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.prefix_2 = ANY (probes_2)
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
            AND pgsimhash.bit_count((s.simhash # query) & (-4398046511104)) > radii[1]
        UNION ALL
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.prefix_3 = ANY (probes_3)
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
            AND pgsimhash.bit_count((s.simhash # query) & (-4398046511104)) > radii[1]
            AND pgsimhash.bit_count((s.simhash # query) & (4398044413952)) > radii[2]
        ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates(bigint, integer, text) IS
    'Every simhash of the collection within a distance, by default the collection''s, with its '
    'distance.';

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
