## Rendered for each block layout that is deployed, by pgsimhash.statements; tables.sql has the table
## of the default layout as this renders it. Each part is a separate def.
<%doc>The prefix of a simhash: the leading blocks of a permutation, moved together.</%doc>
<%def name="prefix(permutation, simhash)" filter="trim">
% for block, position in permutation.places:
${"" if loop.first else " | "}${"(" if position else ""}((${simhash} >> ${block.shift}) & ${block.mask})${f" << {position})" if position else ""}\
% endfor
</%def>
<%doc>The value of a prefix column: the prefix, with the collection's id above it.</%doc>
<%def name="scoped_prefix(permutation)" filter="trim">
(collection_id::bigint << ${collection_shift}) | ${prefix(permutation, "simhash")}
</%def>

<%doc>The table. A row for each distinct simhash; see tables.sql.</%doc>
<%def name="table()">
CREATE TABLE pgsimhash.${layout.table} (
    -- The distinct simhashes of collections with layout ${layout.name}.
    collection_id integer NOT NULL,            -- The collection of the simhash.
    standalone boolean NOT NULL DEFAULT true,  -- Whether it stays when its last page is deleted.
    simhash bigint NOT NULL,                   -- The 64 bits, as a signed number.
% for permutation in layout.permutations:
    ${permutation.column} bigint NOT NULL GENERATED ALWAYS AS (  -- The collection's id, then ${" and ".join(f"bits {block.shift + block.width - 1} to {block.shift}" for block in permutation.leading)}.
        ${scoped_prefix(permutation)}
    ) STORED,
% endfor
    CONSTRAINT ${layout.table}_pkey PRIMARY KEY (${layout.permutations[0].column}, simhash)
        WITH (fillfactor = 97)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

</%def>

<%doc>The indexes of all permutations but the first, whose prefix and simhash are the primary key.</%doc>
<%def name="indexes()">
% for permutation in layout.permutations[1:]:
CREATE INDEX ${layout.table}_${permutation.column}_idx
    ON pgsimhash.${layout.table} (${permutation.column}, simhash) WITH (fillfactor = 97);

% endfor
</%def>

<%doc>The row of the layout in the table layouts.</%doc>
<%def name="row()">
INSERT INTO pgsimhash.layouts (name, suffix, largest_distance, prefix_bits)
VALUES (
    '${layout.name}', '${layout.suffix}', ${layout.distances[-1]}, ${layout.permutations[0].width}
);
</%def>

<%doc>Lookups, and the parts of their bodies.</%doc>
<%def name="settings()">
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
    SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0\
</%def>
<%doc>The result of the function probes without a call, which would take a third of a lookup.</%doc>
<%def name="probes(permutation, into)">\
    own_prefix := pgsimhash.prefix${layout.suffix}(query, ${permutation.number}, own_id);
    IF radii[${permutation.number}] = 0 THEN
        ${into} := ARRAY[own_prefix];
    ELSE
        ${into} := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips${layout.suffix}(${permutation.number}, radii[${permutation.number}])) AS flip
        );
    END IF;
</%def>
<%def name="declarations(function)">
    given_distance constant integer := ${function}${layout.suffix}.distance;
    own_id integer;
    own_layout text;
    max_distance integer;
    radii integer[];\
</%def>
<%def name="collection_and(function, parameter, nulls)">
    SELECT c.collection_id, c.layout, coalesce(given_distance, c.default_distance)
    INTO own_id, own_layout, max_distance
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    IF own_layout IS DISTINCT FROM '${layout.name}' THEN
% if function.startswith("has"):
        EXECUTE 'SELECT ' || pgsimhash._name_for(collection, '${function}') || '($1, $2, $3)'
            INTO answer USING ${parameter}, given_distance, collection;
        RETURN answer;
% else:
        RETURN QUERY EXECUTE
            'SELECT * FROM ' || pgsimhash._name_for(collection, '${function}') || '($1, $2, $3)'
            USING ${parameter}, given_distance, collection;
        RETURN;
% endif
    END IF;
    radii := pgsimhash.radii${layout.suffix}(max_distance);
    IF radii IS NULL OR ${nulls} THEN
        PERFORM pgsimhash._check_lookup(max_distance, '${layout.name}', ${nulls});
    END IF;\
</%def>
<%doc>The lookup of one simhash; search.sql has the one of the default layout.</%doc>
<%def name="lookup()">
CREATE FUNCTION pgsimhash.near_duplicates${layout.suffix}(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.match${settings()}
    ROWS 4
    AS $$
#variable_conflict use_column
DECLARE${declarations("near_duplicates")}
    query constant bigint := near_duplicates${layout.suffix}.simhash;
    own_prefix bigint;
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
            AND pgsimhash.bit_count((s.simhash # query) & (${earlier.bits})) > radii[${earlier.number}]
%     endfor
% endfor
        ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates${layout.suffix}(bigint, integer, text) IS
    'Every simhash of the collection within a distance, by default the collection''s, with its '
    'distance.';

</%def>
<%def name="functions()">
-- The radius of each permutation for a distance, -1 for a permutation that is not probed. Not
-- STRICT, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.radii${layout.suffix}(distance integer) RETURNS integer[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE distance
% for distance in layout.distances:
        WHEN ${distance} THEN '{${", ".join(str(radius) for radius in layout.radii(distance))}}'::integer[]
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.radii${layout.suffix}(integer) IS
    'How many prefix bits a probe of each permutation may flip, for layout ${layout.name}.';

-- A prefix as in the column prefix_<permutation>. Not STRICT, so that PostgreSQL inlines it.
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
    'The value of the column prefix_<permutation> for a simhash of the collection.';

-- All changes of at most radius bits of a prefix. Not STRICT, so that plans contain constants
-- instead of a call.
CREATE FUNCTION pgsimhash._flips${layout.suffix}(permutation integer, radius integer)
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
            ELSE pgsimhash._masks(${width}, radius)
        END
% endfor
    END;

CREATE FUNCTION pgsimhash.probes${layout.suffix}(
    simhash bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(
        SELECT own.prefix # flip
        FROM (
            SELECT pgsimhash.prefix${layout.suffix}(simhash, permutation, collection_id) AS prefix
            OFFSET 0
        ) AS own
        CROSS JOIN unnest(pgsimhash._flips${layout.suffix}(permutation, radius)) AS flip
    );

COMMENT ON FUNCTION pgsimhash.probes${layout.suffix}(bigint, integer, integer, integer) IS
    'The values of prefix_<permutation> that a lookup of this radius must visit.';

-- Many queries at once: each index is walked in its own order, and OFFSET 0 keeps the planner from
-- reversing the join.
CREATE FUNCTION pgsimhash.near_duplicates${layout.suffix}(
    simhashes bigint[], distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.numbered_match${settings()}
    AS $$
#variable_conflict use_column
DECLARE${declarations("near_duplicates")}
% for permutation in layout.permutations:
    flips_${permutation.number} bigint[];
% endfor
BEGIN${collection_and("near_duplicates", "simhashes", "array_position(simhashes, NULL) IS NOT NULL")}
% for permutation in layout.permutations:
    flips_${permutation.number} :=
        pgsimhash._flips${layout.suffix}(${permutation.number}, radii[${permutation.number}]);
% endfor
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
                (own_id::bigint << ${collection_shift})
                    | ${prefix(permutation, "u.query")} AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[${permutation.number}] >= 0
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
                    > radii[${earlier.number}]
%     endfor
            OFFSET 0
        ) AS m
% endfor
    ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates${layout.suffix}(bigint[], integer, text) IS
    'near_duplicates for each simhash of an array; query_number counts from 1.';

-- The permutations with the fewest probes come first, and the first match ends the search.
CREATE FUNCTION pgsimhash.has_near_duplicate${layout.suffix}(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean${settings()}
    AS $$
DECLARE${declarations("has_near_duplicate")}
    query constant bigint := has_near_duplicate${layout.suffix}.simhash;
    answer boolean;
    own_prefix bigint;
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
    'Whether the collection has a simhash within a distance, by default the collection''s.';

DO $$
BEGIN
    IF NOT pgsimhash._is_distributed() THEN
        CREATE TRIGGER note_inserted
            AFTER INSERT ON pgsimhash.${layout.table}
            FOR EACH STATEMENT
            WHEN (current_setting('simhashes.noted', true) IS DISTINCT FROM 'yes')
            EXECUTE FUNCTION pgsimhash._note_inserted();
    END IF;
END
$$;
</%def>
