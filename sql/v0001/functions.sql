<%namespace file="prefix.sql" import="prefix, scoped_prefix"/>\
-- PostgreSQL has bit_count for bytea and bit only.
CREATE FUNCTION pgsimhash.bit_count(bits bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count(bits::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.bit_count(bigint) IS 'How many of the 64 bits are set.';

CREATE FUNCTION pgsimhash.hamming_distance(a bigint, b bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count((a # b)::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.hamming_distance(bigint, bigint) IS
    'In how many of the 64 bits two simhashes differ.';

-- The radius of each permutation for a distance: sum(radius + 1) = distance + 1, and -1 for a
-- permutation that is not probed.
CREATE FUNCTION pgsimhash.radii(max_distance integer) RETURNS integer[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE max_distance
% for distance in layout.distances:
        WHEN ${distance} THEN '{${", ".join(str(radius) for radius in layout.radii(distance))}}'::integer[]
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.radii(integer) IS
    'How many prefix bits a probe of each permutation may flip, for layout ${layout.name}.';

-- A prefix as the column prefix_<permutation> holds it. Not STRICT: PostgreSQL would no longer
-- inline it.
CREATE FUNCTION pgsimhash.prefix(simhash bigint, permutation integer, collection_id integer)
RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE permutation
% for permutation in layout.permutations:
        WHEN ${permutation.number} THEN ${scoped_prefix(permutation)}
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.prefix(bigint, integer, integer) IS
    'What the column prefix_<permutation> holds for a simhash of the collection.';

-- Every way to change at most radius bits of a prefix, for radii that some distance needs.
CREATE FUNCTION pgsimhash.flips(permutation integer, radius integer) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE
        WHEN radius < 0 THEN '{}'::bigint[]
% for permutation in layout.permutations:
%     for radius in range(layout.largest_radius + 1):
        WHEN permutation = ${permutation.number} AND radius = ${radius} THEN '{${",".join(str(flip) for flip in permutation.flips(radius))}}'::bigint[]
%     endfor
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.flips(integer, integer) IS
    'The masks of at most radius bits in the prefix of a permutation.';

CREATE FUNCTION pgsimhash.probes(
    query bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(
        SELECT own.prefix # flip
        FROM (
            SELECT pgsimhash.prefix(query, permutation, collection_id) AS prefix OFFSET 0
        ) AS own
        CROSS JOIN unnest(pgsimhash.flips(permutation, radius)) AS flip
    );

COMMENT ON FUNCTION pgsimhash.probes(bigint, integer, integer, integer) IS
    'The values of prefix_<permutation> that a lookup of this radius must visit.';

-- Collection and distance of a lookup, checked once for all the functions below.
CREATE FUNCTION pgsimhash.collection_of_lookup(collection text, max_distance integer)
RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    AS $$
DECLARE
    found constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
BEGIN
    IF pgsimhash.radii(max_distance) IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'max_distance ' || coalesce(max_distance::text, 'NULL')
                || ' is not one that layout ${layout.name} answers',
            HINT = 'Ask for a distance from ${layout.distances[0]} to ${layout.distances[-1]}.';
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'undefined_object',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist',
            HINT = 'SELECT name FROM pgsimhash.collections lists the ones that do.';
    END IF;
    RETURN found;
END
$$;

COMMENT ON FUNCTION pgsimhash.collection_of_lookup(text, integer) IS
    'The number of a collection, or an error if it or the distance is not one.';

-- Every simhash of a collection within max_distance bits of the query, each once: a match is
-- reported by the first permutation whose probes reach it. The planner's estimates for arrays
-- of probes are guesses, and with stale statistics they can end in a sequential scan.
CREATE FUNCTION pgsimhash.near_duplicates(
    query bigint, max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS TABLE (simhash bigint, distance integer)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    AS $$
#variable_conflict use_column
DECLARE
    wanted constant integer := pgsimhash.collection_of_lookup(collection, max_distance);
    radius constant integer[] := pgsimhash.radii(max_distance);
% for permutation in layout.permutations:
    probes_${permutation.number} constant bigint[] :=
        pgsimhash.probes(query, ${permutation.number}, radius[${permutation.number}], wanted);
% endfor
BEGIN
    IF query IS NULL THEN
        RAISE EXCEPTION 'the query simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    RETURN QUERY
% for permutation in layout.permutations:
%     if not loop.first:
        UNION ALL
%     endif
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.${permutation.column} = ANY (probes_${permutation.number})
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
%     for earlier in layout.permutations[:permutation.number - 1]:
            AND pgsimhash.bit_count((s.simhash # query) & (${earlier.bits}))
                > radius[${earlier.number}]
%     endfor
% endfor
    ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates(bigint, integer, text) IS
    'Every simhash of the collection within max_distance bits of the query, with its distance.';

-- The same for many queries: each index is walked in its own order, and OFFSET 0 keeps the
-- planner from turning the walk around.
CREATE FUNCTION pgsimhash.near_duplicates(
    queries bigint[], max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS TABLE (query_number bigint, simhash bigint, distance integer)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    AS $$
#variable_conflict use_column
DECLARE
    wanted constant integer := pgsimhash.collection_of_lookup(collection, max_distance);
    radius constant integer[] := pgsimhash.radii(max_distance);
% for permutation in layout.permutations:
    flips_${permutation.number} constant bigint[] :=
        pgsimhash.flips(${permutation.number}, radius[${permutation.number}]);
% endfor
BEGIN
    IF array_position(queries, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a query simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    RETURN QUERY
% for permutation in layout.permutations:
%     if not loop.first:
        UNION ALL
%     endif
        SELECT q.query_number, m.simhash, m.distance
        FROM (
            SELECT
                u.query,
                u.query_number,
                (wanted::bigint << ${collection_shift})
                    | ${prefix(permutation, "u.query")} AS prefix
            FROM unnest(queries) WITH ORDINALITY AS u (query, query_number)
            WHERE radius[${permutation.number}] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, q.query) AS distance
            FROM pgsimhash.simhashes AS s
            WHERE s.${permutation.column} = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(flips_${permutation.number}) AS flip
                ))
                AND pgsimhash.hamming_distance(s.simhash, q.query) <= max_distance
%     for earlier in layout.permutations[:permutation.number - 1]:
                AND pgsimhash.bit_count((s.simhash # q.query) & (${earlier.bits}))
                    > radius[${earlier.number}]
%     endfor
            OFFSET 0
        ) AS m
% endfor
    ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates(bigint[], integer, text) IS
    'near_duplicates for each of the queries; query_number counts from 1.';

-- The permutations with the fewest probes come first, and the first hit is the answer.
CREATE FUNCTION pgsimhash.has_near_duplicate(
    query bigint, max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    AS $$
DECLARE
    wanted constant integer := pgsimhash.collection_of_lookup(collection, max_distance);
    radius constant integer[] := pgsimhash.radii(max_distance);
BEGIN
    IF query IS NULL THEN
        RAISE EXCEPTION 'the query simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
% for permutation in reversed(layout.permutations):
    PERFORM FROM pgsimhash.simhashes AS s
    WHERE s.${permutation.column} = ANY (
            pgsimhash.probes(query, ${permutation.number}, radius[${permutation.number}], wanted)
        )
        AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
    LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
% endfor
    RETURN false;
END
$$;

COMMENT ON FUNCTION pgsimhash.has_near_duplicate(bigint, integer, text) IS
    'Whether a simhash of the collection is within max_distance bits of the query.';
