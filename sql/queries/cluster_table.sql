-- A caller's transaction may ask more than once.
DROP TABLE IF EXISTS pg_temp.pgsimhash_clusters;

CREATE TABLE pg_temp.pgsimhash_clusters (simhash bigint, cluster bigint) ON COMMIT DROP
