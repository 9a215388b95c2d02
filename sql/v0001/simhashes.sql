<%namespace file="prefix.sql" import="scoped_prefix"/>\
-- One row per distinct simhash of a collection, however many pages share it. The server fills
-- the prefix columns, so that rows inserted by plain SQL are right too. With the collection's
-- number above the prefix, every index is scoped to a collection without a further column; with
-- the simhash behind the prefix, the Hamming check runs on the index alone. Where bare stands it
-- takes no space: the simhash begins at a multiple of eight bytes.
CREATE TABLE pgsimhash.${layout.table} (
    collection_id integer NOT NULL,
    bare boolean NOT NULL DEFAULT true,
    simhash bigint NOT NULL,
% for permutation in layout.permutations:
    ${permutation.column} bigint NOT NULL GENERATED ALWAYS AS (
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

COMMENT ON TABLE pgsimhash.${layout.table} IS
    'The distinct simhashes of each collection, with one prefix column per permutation '
    '(layout ${layout.name}).';

COMMENT ON COLUMN pgsimhash.${layout.table}.bare IS
    'Whether it was added by itself, so that it stays when the pages go that share it.';

INSERT INTO pgsimhash.layouts (name, suffix, indexed, largest_distance, prefix_bits)
VALUES (
    '${layout.name}', '${layout.suffix}', ${"true" if indexed else "false"},
    ${layout.distances[-1]}, ${layout.permutations[0].width}
);

CREATE TRIGGER inserted AFTER INSERT ON pgsimhash.${layout.table}
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION pgsimhash.simhashes_inserted('${layout.name}');

CREATE TRIGGER deleted AFTER DELETE ON pgsimhash.${layout.table}
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION pgsimhash.simhashes_deleted('${layout.name}');

CREATE TRIGGER changed AFTER UPDATE ON pgsimhash.${layout.table}
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION pgsimhash.simhashes_inserted('${layout.name}');

CREATE TRIGGER updated BEFORE UPDATE OF collection_id, simhash ON pgsimhash.${layout.table}
    FOR EACH STATEMENT EXECUTE FUNCTION pgsimhash.simhashes_updated();
