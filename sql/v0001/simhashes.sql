<%namespace file="prefix.sql" import="scoped_prefix"/>\
-- One row per distinct simhash of a collection, however many pages share it. The server fills
-- the prefix columns, so that rows inserted by plain SQL are right too. With the collection's
-- number above the prefix, every index is scoped to a collection without a further column; with
-- the simhash behind the prefix, the Hamming check runs on the index alone.
CREATE TABLE pgsimhash.simhashes (
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    simhash bigint NOT NULL,
% for permutation in layout.permutations:
    ${permutation.column} bigint NOT NULL GENERATED ALWAYS AS (
        ${scoped_prefix(permutation)}
    ) STORED,
% endfor
    CONSTRAINT simhashes_pkey PRIMARY KEY (${layout.permutations[0].column}, simhash)
        WITH (fillfactor = 97)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
% for permutation in layout.permutations[1:]:

CREATE INDEX simhashes_${permutation.column}_idx
    ON pgsimhash.simhashes (${permutation.column}, simhash) WITH (fillfactor = 97);
% endfor

COMMENT ON TABLE pgsimhash.simhashes IS
    'The distinct simhashes of each collection, with one prefix column per permutation '
    '(layout ${layout.name}).';
