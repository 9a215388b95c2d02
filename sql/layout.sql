-- Lookups of simhashes. The parts from "Permutation 1:" to "All permutations." are those of the
-- layout 22+21+21, like those in tables.sql; the deployment of another layout replaces them.

-- The layout of the prefix columns.
CREATE FUNCTION pgsimhash.layout() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN '22+21+21';

-- The matches of find_many; with only_one, any one.
--
-- Manku, Jain, Das Sarma (WWW 2007), section 3. Two simhashes within max_distance bits differ in
-- few bits of at least one bit block. So for each permutation the lookup visits all prefixes that
-- differ from the query's in at most radii[n] bits, and compares the simhashes that it finds there.
-- The orders require the right index; of a table that seems empty, the planner would scan all of any
-- partial index. Each index is walked in its own order, and OFFSET 0 keeps the planner from reversing
-- the join. ROWS keeps the plans of surrounding statements generic too.
CREATE FUNCTION pgsimhash._matches(
    simhashes bigint[], distance integer, collection text, only_one boolean DEFAULT false
) RETURNS SETOF pgsimhash.numbered_match
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4 SET search_path = pg_catalog, pg_temp
    SET profile = in_order AS $$
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
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    radii := pgsimhash.radii(max_distance);
    IF own_id IS NULL OR radii IS NULL OR has_nulls THEN
        PERFORM pgsimhash._id_of(collection);
        IF has_nulls THEN
            RAISE EXCEPTION 'a query simhash is NULL or an array'
                USING ERRCODE = 'PS012', HINT = 'Omit it from the lookup.';
        END IF;
        RAISE EXCEPTION 'layout % does not support distance %', pgsimhash.layout(),
            coalesce(max_distance::text, 'NULL')
            USING ERRCODE = 'PS011', HINT = 'Give a distance from 0 to ' || (
                SELECT max(d) FROM generate_series(0, 64) AS d
                WHERE pgsimhash.radii(d) IS NOT NULL
            ) || '.';
    END IF;
    RETURN QUERY
    SELECT DISTINCT m.query_number, m.simhash, m.distance
    FROM (
        -- Permutation 1:
        SELECT q.query_number, f.simhash, f.distance
        FROM (
            SELECT
                u.query, u.query_number,
                own_id::bigint << 40 | ((u.query >> 42) & 4194303) AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[1] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT p.simhash, pgsimhash.hamming_distance(p.simhash, q.query) AS distance
            FROM pgsimhash.pages AS p
            WHERE p.indexed AND p.prefix_1 = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(pgsimhash._flips(22, radii[1])) AS flip
                ))
                AND pgsimhash.hamming_distance(p.simhash, q.query) <= max_distance
            ORDER BY p.prefix_1
            OFFSET 0
        ) AS f
        UNION ALL
        -- Permutation 2:
        SELECT q.query_number, f.simhash, f.distance
        FROM (
            SELECT
                u.query, u.query_number,
                own_id::bigint << 40 | ((u.query >> 21) & 2097151) AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[2] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT p.simhash, pgsimhash.hamming_distance(p.simhash, q.query) AS distance
            FROM pgsimhash.pages AS p
            WHERE p.indexed AND p.prefix_2 = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(pgsimhash._flips(21, radii[2])) AS flip
                ))
                AND pgsimhash.hamming_distance(p.simhash, q.query) <= max_distance
            ORDER BY p.prefix_2
            OFFSET 0
        ) AS f
        UNION ALL
        -- Permutation 3:
        SELECT q.query_number, f.simhash, f.distance
        FROM (
            SELECT
                u.query, u.query_number,
                own_id::bigint << 40 | ((u.query >> 0) & 2097151) AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[3] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT p.simhash, pgsimhash.hamming_distance(p.simhash, q.query) AS distance
            FROM pgsimhash.pages AS p
            WHERE p.indexed AND p.prefix_3 = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(pgsimhash._flips(21, radii[3])) AS flip
                ))
                AND pgsimhash.hamming_distance(p.simhash, q.query) <= max_distance
            ORDER BY p.prefix_3
            OFFSET 0
        ) AS f
        -- All permutations.
        LIMIT CASE WHEN only_one THEN 1 END
    ) AS m;
END
$$;

-- Every simhash of the collection within a distance, by default the collection's, with its
-- distance.
--
-- Without a search_path, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.find(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.match
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 4
    BEGIN ATOMIC
        SELECT m.simhash, m.distance
        FROM pgsimhash._matches(ARRAY[simhash], distance, collection) AS m;
    END;

-- find for each simhash of an array; query_number counts from 1.
CREATE FUNCTION pgsimhash.find_many(
    simhashes bigint[], distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.numbered_match
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 4
    BEGIN ATOMIC
        SELECT m.query_number, m.simhash, m.distance
        FROM pgsimhash._matches(simhashes, distance, collection) AS m;
    END;

-- Whether the collection has a simhash within a distance, by default the collection's.
CREATE FUNCTION pgsimhash.has_near(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pgsimhash._matches(ARRAY[simhash], distance, collection, true));
END
$$;

-- How many prefix bits a probe of each permutation may flip.
--
-- The radii of all distances, -1 for a permutation that is not probed. Not STRICT, so that
-- PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.radii(distance integer) RETURNS integer[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE distance
        -- Distances:
        WHEN 0 THEN '{0, -1, -1}'::integer[]
        WHEN 1 THEN '{0, 0, -1}'::integer[]
        WHEN 2 THEN '{0, 0, 0}'::integer[]
        WHEN 3 THEN '{1, 0, 0}'::integer[]
        WHEN 4 THEN '{1, 1, 0}'::integer[]
        WHEN 5 THEN '{1, 1, 1}'::integer[]
        WHEN 6 THEN '{2, 1, 1}'::integer[]
        WHEN 7 THEN '{2, 2, 1}'::integer[]
        WHEN 8 THEN '{2, 2, 2}'::integer[]
        WHEN 9 THEN '{3, 2, 2}'::integer[]
        WHEN 10 THEN '{3, 3, 2}'::integer[]
        WHEN 11 THEN '{3, 3, 3}'::integer[]
        WHEN 12 THEN '{4, 3, 3}'::integer[]
        -- All distances.
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
        WHEN width <= 22 AND radius = 1 THEN ('{
            0,1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,
            524288,1048576,2097152
        }'::bigint[])[1:width + 1]
        WHEN width <= 22 AND radius = 2 THEN ('{
            0,1,2,3,4,5,6,8,9,10,12,16,17,18,20,24,32,33,34,36,40,48,64,65,66,68,72,80,96,128,129,
            130,132,136,144,160,192,256,257,258,260,264,272,288,320,384,512,513,514,516,520,528,544,
            576,640,768,1024,1025,1026,1028,1032,1040,1056,1088,1152,1280,1536,2048,2049,2050,2052,
            2056,2064,2080,2112,2176,2304,2560,3072,4096,4097,4098,4100,4104,4112,4128,4160,4224,
            4352,4608,5120,6144,8192,8193,8194,8196,8200,8208,8224,8256,8320,8448,8704,9216,10240,
            12288,16384,16385,16386,16388,16392,16400,16416,16448,16512,16640,16896,17408,18432,
            20480,24576,32768,32769,32770,32772,32776,32784,32800,32832,32896,33024,33280,33792,
            34816,36864,40960,49152,65536,65537,65538,65540,65544,65552,65568,65600,65664,65792,
            66048,66560,67584,69632,73728,81920,98304,131072,131073,131074,131076,131080,131088,
            131104,131136,131200,131328,131584,132096,133120,135168,139264,147456,163840,196608,
            262144,262145,262146,262148,262152,262160,262176,262208,262272,262400,262656,263168,
            264192,266240,270336,278528,294912,327680,393216,524288,524289,524290,524292,524296,
            524304,524320,524352,524416,524544,524800,525312,526336,528384,532480,540672,557056,
            589824,655360,786432,1048576,1048577,1048578,1048580,1048584,1048592,1048608,1048640,
            1048704,1048832,1049088,1049600,1050624,1052672,1056768,1064960,1081344,1114112,1179648,
            1310720,1572864,2097152,2097153,2097154,2097156,2097160,2097168,2097184,2097216,2097280,
            2097408,2097664,2098176,2099200,2101248,2105344,2113536,2129920,2162688,2228224,2359296,
            2621440,3145728
        }'::bigint[])[1:1 + width * (width + 1) / 2]
        ELSE pgsimhash._masks(width, radius)
    END;

-- The values of prefix_<permutation> that a lookup of this radius must visit.
CREATE FUNCTION pgsimhash.probes(
    simhash bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE permutation
        -- Permutation 1:
        WHEN 1 THEN ARRAY(
            SELECT (collection_id::bigint << 40 | ((simhash >> 42) & 4194303)) # flip
            FROM unnest(pgsimhash._flips(22, radius)) AS flip
        )
        -- Permutation 2:
        WHEN 2 THEN ARRAY(
            SELECT (collection_id::bigint << 40 | ((simhash >> 21) & 2097151)) # flip
            FROM unnest(pgsimhash._flips(21, radius)) AS flip
        )
        -- Permutation 3:
        WHEN 3 THEN ARRAY(
            SELECT (collection_id::bigint << 40 | ((simhash >> 0) & 2097151)) # flip
            FROM unnest(pgsimhash._flips(21, radius)) AS flip
        )
        -- All permutations.
    END;
