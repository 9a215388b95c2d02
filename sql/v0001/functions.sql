<%namespace file="prefix.sql" import="prefix"/>\
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

-- All prefixes within the radius of the query's own: what a lookup looks for in one column.
CREATE FUNCTION pgsimhash.probes(
    query bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(
        SELECT flip # (
            (collection_id::bigint << ${collection_shift})
            | CASE permutation
% for permutation in layout.permutations:
                WHEN ${permutation.number} THEN ${prefix(permutation, "query")}
% endfor
            END
        )
        FROM unnest(
            CASE
% for permutation in layout.permutations:
%     for radius in range(layout.largest_radius + 1):
                WHEN permutation = ${permutation.number} AND radius = ${radius} THEN '{${",".join(str(flip) for flip in permutation.flips(radius))}}'::bigint[]
%     endfor
% endfor
            END
        ) AS flip
    );

COMMENT ON FUNCTION pgsimhash.probes(bigint, integer, integer, integer) IS
    'The values of prefix_<permutation> that a lookup of this radius must visit.';

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
    wanted constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
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
    IF radius IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'max_distance ' || coalesce(max_distance::text, 'NULL')
                || ' is not one that layout ${layout.name} answers',
            HINT = 'Ask for a distance from ${layout.distances[0]} to ${layout.distances[-1]}.';
    END IF;
    IF wanted IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'undefined_object',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist',
            HINT = 'SELECT name FROM pgsimhash.collections lists the ones that do.';
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

CREATE FUNCTION pgsimhash.near_duplicates(
    queries bigint[], max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS TABLE (query_number bigint, simhash bigint, distance integer)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
        SELECT q.query_number, m.simhash, m.distance
        FROM unnest(queries) WITH ORDINALITY AS q (query, query_number)
        CROSS JOIN LATERAL pgsimhash.near_duplicates(q.query, max_distance, collection) AS m
    $$;

COMMENT ON FUNCTION pgsimhash.near_duplicates(bigint[], integer, text) IS
    'near_duplicates for each of the queries; query_number counts from 1.';
