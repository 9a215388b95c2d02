DROP FUNCTION pgsimhash.has_near_duplicate${layout.suffix}(bigint, integer, text);

DROP FUNCTION pgsimhash.near_duplicates${layout.suffix}(bigint[], integer, text);

DROP FUNCTION pgsimhash.near_duplicates${layout.suffix}(bigint, integer, text);

DROP FUNCTION pgsimhash.probes${layout.suffix}(bigint, integer, integer, integer);

DROP FUNCTION pgsimhash.flips${layout.suffix}(integer, integer);

DROP FUNCTION pgsimhash.prefix${layout.suffix}(bigint, integer, integer);

DROP FUNCTION pgsimhash.radii${layout.suffix}(integer);

DROP TABLE pgsimhash.${layout.table};
