-- Lookups of simhashes. As in tables.sql, parts are deployed for each permutation of the layout.

-- The layout of the prefix columns.
CREATE FUNCTION pgsimhash.layout() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN '${layout}';

-- The matches of find_many, nearest first; with only_one, any one.
--
-- Manku, Jain, Das Sarma (WWW 2007), section 3. Two simhashes within max_distance bits differ in
-- few bits of at least one bit block. So for each permutation the lookup visits all prefixes that
-- differ from the query's in at most radii[n] bits, and compares the simhashes that it finds there.
-- The orders require the right index; of a table that seems empty, the planner would scan all of any
-- partial index. Each index is walked in its own order, and OFFSET 0 keeps the planner from reversing
-- the join. ROWS keeps the plans of surrounding statements generic too.
CREATE FUNCTION pgsimhash._matches(
    simhashes bigint[], distance integer, collection text, only_one boolean DEFAULT false,
    scheme text DEFAULT NULL
) RETURNS SETOF pgsimhash.numbered_match
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4 ${in_order} AS $$
#variable_conflict use_column
DECLARE
    has_nulls constant boolean := array_ndims(simhashes) > 1
        OR array_position(simhashes, NULL) IS NOT NULL;
    own_id integer;
    max_distance integer;
    radii integer[];
BEGIN
    SELECT c.collection_id, coalesce(_matches.distance, c.default_distance)
    INTO own_id, max_distance
    FROM pgsimhash.collections AS c
    WHERE c.name = collection AND c.scheme = coalesce(_matches.scheme, c.scheme);
    radii := pgsimhash.radii(max_distance);
    IF own_id IS NULL OR radii IS NULL OR has_nulls THEN
        PERFORM pgsimhash._id_of(collection, _matches.scheme);
        IF has_nulls THEN
            RAISE EXCEPTION 'a query simhash is NULL or an array'
                USING ERRCODE = 'PS010', HINT = 'Omit it from the lookup.';
        END IF;
        RAISE EXCEPTION 'layout % does not support distance %', pgsimhash.layout(),
            coalesce(max_distance::text, 'NULL')
            USING ERRCODE = 'PS010', HINT = 'Give a distance from 0 to ${largest}.';
    END IF;
    RETURN QUERY
    SELECT DISTINCT m.query_number, m.simhash, m.distance
    FROM (
        -- Permutation ${n}:
        SELECT q.query_number, f.simhash, f.distance
        FROM (
            SELECT
                u.query, u.query_number,
                own_id::bigint << 40 | ${prefix of u.query} AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[${n}] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT p.simhash, pgsimhash.hamming_distance(p.simhash, q.query) AS distance
            FROM pgsimhash.pages AS p
            WHERE p.indexed AND p.prefix_${n} = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(pgsimhash._flips(${width}, radii[${n}])) AS flip
                ))
                AND pgsimhash.hamming_distance(p.simhash, q.query) <= max_distance
            ORDER BY p.prefix_${n}
            OFFSET 0
        ) AS f
        UNION ALL
        -- All permutations.
        LIMIT CASE WHEN only_one THEN 1 END
    ) AS m
    ORDER BY m.query_number, m.distance, m.simhash;
END
$$;

-- Every simhash within a distance, by default the collection's, with its distance.
--
-- Without a search_path, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.find(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.match
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 4 AS $$
    SELECT m.simhash, m.distance
    FROM pgsimhash._matches(ARRAY[simhash], distance, collection) AS m;
$$;

-- find for each simhash of an array; query_number counts from 1.
CREATE FUNCTION pgsimhash.find_many(
    simhashes bigint[], distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.numbered_match
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 4 AS $$
    SELECT m.query_number, m.simhash, m.distance
    FROM pgsimhash._matches(simhashes, distance, collection) AS m;
$$;

-- Whether the collection has a simhash within a distance, by default the collection's.
CREATE FUNCTION pgsimhash.has_near(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN EXISTS (SELECT FROM pgsimhash._matches(ARRAY[simhash], distance, collection, true));

-- How many prefix bits a probe of each permutation may flip.
--
-- It is -1 for a permutation that is not probed. Not STRICT, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.radii(distance integer) RETURNS integer[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE distance
        ${radii}
    END;

CREATE FUNCTION pgsimhash._masks(width integer, radius integer) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        WITH RECURSIVE masks (mask, below, bits) AS (
            SELECT 0::bigint, width, 0
            UNION ALL
            SELECT mask | (1::bigint << bit), bit, bits + 1
            FROM masks CROSS JOIN LATERAL generate_series(0, below - 1) AS bit
            WHERE bits < radius
        )
        SELECT coalesce(array_agg(mask), '{}') FROM masks WHERE radius >= 0;
    END;

-- Every mask of the lowest width bits with at most radius bits. The constants are those of up to 22
-- bits in ascending order, so the masks of a smaller width come first.
CREATE FUNCTION pgsimhash._flips(width integer, radius integer) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN radius < 0 THEN '{}'::bigint[]
        WHEN radius = 0 THEN '{0}'::bigint[]
        WHEN width <= 22 AND radius = 1 THEN ('{${flips 1}}'::bigint[])[1:width + 1]
        WHEN width <= 22 AND radius = 2 THEN ('{${flips 2}}'::bigint[])[1:1 + width * (width + 1) / 2]
        ELSE pgsimhash._masks(width, radius)
    END;

-- The values of prefix_<permutation> that a lookup of this radius must visit.
CREATE FUNCTION pgsimhash.probes(
    simhash bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE permutation
        -- Permutation ${n}:
        WHEN ${n} THEN ARRAY(
            SELECT (collection_id::bigint << 40 | ${prefix of simhash}) # flip
            FROM unnest(pgsimhash._flips(${width}, radius)) AS flip
        )
        -- All permutations.
    END;
