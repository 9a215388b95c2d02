CREATE TEMPORARY TABLE pgsimhash_clusters (simhash bigint, cluster bigint) ON COMMIT DROP
