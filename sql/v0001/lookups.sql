<%namespace file="prefix.sql" import="prefix, scoped_prefix"/>\
<%def name="settings()">
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off\
</%def>
<%doc>What the function probes returns, without calling it: that takes a third of a lookup.</%doc>
<%def name="probes(permutation, into)">\
    own := pgsimhash.prefix${layout.suffix}(query, ${permutation.number}, wanted);
    IF radius[${permutation.number}] = 0 THEN
        ${into} := ARRAY[own];
    ELSE
        ${into} := ARRAY(
            SELECT own # flip
            FROM unnest(
                pgsimhash.flips${layout.suffix}(${permutation.number}, radius[${permutation.number}])
            ) AS flip
        );
    END IF;
</%def>
<%def name="declarations()">
    wanted integer;
    chosen text;
    radius constant integer[] := pgsimhash.radii${layout.suffix}(max_distance);\
</%def>
<%def name="collection_and(function, parameter, nulls)">
    SELECT c.collection_id, c.layout INTO wanted, chosen
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    IF chosen IS DISTINCT FROM '${layout.name}' THEN
% if function.startswith("has"):
        EXECUTE 'SELECT ' || pgsimhash.name_for(collection, '${function}') || '($1, $2, $3)'
            INTO answer USING ${parameter}, max_distance, collection;
        RETURN answer;
% else:
        RETURN QUERY EXECUTE
            'SELECT * FROM ' || pgsimhash.name_for(collection, '${function}') || '($1, $2, $3)'
            USING ${parameter}, max_distance, collection;
        RETURN;
% endif
    END IF;
    IF radius IS NULL OR ${nulls} THEN
        PERFORM pgsimhash.check_lookup(max_distance, '${layout.name}', ${nulls});
    END IF;\
</%def>
-- The radius of each permutation for a distance, -1 for a permutation that is not probed.
CREATE FUNCTION pgsimhash.radii${layout.suffix}(max_distance integer) RETURNS integer[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE max_distance
% for distance in layout.distances:
        WHEN ${distance} THEN '{${", ".join(str(radius) for radius in layout.radii(distance))}}'::integer[]
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.radii${layout.suffix}(integer) IS
    'How many prefix bits a probe of each permutation may flip, for layout ${layout.name}.';

-- A prefix as the column prefix_<permutation> holds it. Not STRICT: PostgreSQL would no longer
-- inline it.
CREATE FUNCTION pgsimhash.prefix${layout.suffix}(
    simhash bigint, permutation integer, collection_id integer
) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE permutation
% for permutation in layout.permutations:
        WHEN ${permutation.number} THEN ${scoped_prefix(permutation)}
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.prefix${layout.suffix}(bigint, integer, integer) IS
    'What the column prefix_<permutation> holds for a simhash of the collection.';

-- Every way to change at most radius bits of a prefix. Not STRICT, so that plans hold the constants
-- that they need, and no call.
CREATE FUNCTION pgsimhash.flips${layout.suffix}(permutation integer, radius integer)
RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN radius < 0 THEN '{}'::bigint[]
        WHEN radius = 0 THEN '{0}'::bigint[]
% for width, numbers in layout.permutations_by_width.items():
        WHEN permutation IN (${", ".join(str(number) for number in numbers)}) THEN CASE radius
%     for radius in (1, 2):
            WHEN ${radius} THEN '{${",".join(str(flip) for flip in layout.permutations[numbers[0] - 1].flips(radius))}}'::bigint[]
%     endfor
            ELSE pgsimhash.masks(${width}, radius)
        END
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.flips${layout.suffix}(integer, integer) IS
    'The masks of at most radius bits in the prefix of a permutation.';

CREATE FUNCTION pgsimhash.probes${layout.suffix}(
    query bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(
        SELECT own.prefix # flip
        FROM (
            SELECT pgsimhash.prefix${layout.suffix}(query, permutation, collection_id) AS prefix
            OFFSET 0
        ) AS own
        CROSS JOIN unnest(pgsimhash.flips${layout.suffix}(permutation, radius)) AS flip
    );

COMMENT ON FUNCTION pgsimhash.probes${layout.suffix}(bigint, integer, integer, integer) IS
    'The values of prefix_<permutation> that a lookup of this radius must visit.';

-- Every simhash of a collection within max_distance bits of the query, each once: a match is
-- reported by the first permutation whose probes reach it. The planner's estimates for arrays
-- of probes are guesses: with stale statistics they can end in a sequential scan, and with fresh
-- ones in a new plan for every call, which takes longer than the lookup. ROWS keeps the plans of
-- the statements around it generic too.
CREATE FUNCTION pgsimhash.near_duplicates${layout.suffix}(
    query bigint, max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS TABLE (simhash bigint, distance integer)${settings()}
    ROWS 4
    AS $$
#variable_conflict use_column
DECLARE${declarations()}
    own bigint;
% for permutation in layout.permutations:
    probes_${permutation.number} bigint[];
% endfor
BEGIN${collection_and("near_duplicates", "query", "query IS NULL")}
% for permutation in layout.permutations:
${probes(permutation, f"probes_{permutation.number}")}\
% endfor
    RETURN QUERY
% for permutation in layout.permutations:
%     if not loop.first:
        UNION ALL
%     endif
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.${layout.table} AS s
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

COMMENT ON FUNCTION pgsimhash.near_duplicates${layout.suffix}(bigint, integer, text) IS
    'Every simhash of the collection within max_distance bits of the query, with its distance.';

-- The same for many queries: each index is walked in its own order, and OFFSET 0 keeps the
-- planner from turning the walk around.
CREATE FUNCTION pgsimhash.near_duplicates${layout.suffix}(
    queries bigint[], max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS TABLE (query_number bigint, simhash bigint, distance integer)${settings()}
    AS $$
#variable_conflict use_column
DECLARE${declarations()}
% for permutation in layout.permutations:
    flips_${permutation.number} constant bigint[] :=
        pgsimhash.flips${layout.suffix}(${permutation.number}, radius[${permutation.number}]);
% endfor
BEGIN${collection_and("near_duplicates", "queries", "array_position(queries, NULL) IS NOT NULL")}
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
            FROM pgsimhash.${layout.table} AS s
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

COMMENT ON FUNCTION pgsimhash.near_duplicates${layout.suffix}(bigint[], integer, text) IS
    'near_duplicates for each of the queries; query_number counts from 1.';

-- The permutations with the fewest probes come first, and the first hit is the answer.
CREATE FUNCTION pgsimhash.has_near_duplicate${layout.suffix}(
    query bigint, max_distance integer DEFAULT 3, collection text DEFAULT 'default'
) RETURNS boolean${settings()}
    AS $$
DECLARE${declarations()}
    answer boolean;
    own bigint;
    probes bigint[];
BEGIN${collection_and("has_near_duplicate", "query", "query IS NULL")}
% for permutation in reversed(layout.permutations):
${probes(permutation, "probes")}\
    PERFORM FROM pgsimhash.${layout.table} AS s
    WHERE s.${permutation.column} = ANY (probes)
        AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
    LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
% endfor
    RETURN false;
END
$$;

COMMENT ON FUNCTION pgsimhash.has_near_duplicate${layout.suffix}(bigint, integer, text) IS
    'Whether a simhash of the collection is within max_distance bits of the query.';
