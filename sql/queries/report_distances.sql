-- The versions that duplicated a known page when they came in, by how many bits.
SELECT distance, pg_catalog.count(*) AS pages
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND distance IS NOT NULL
GROUP BY distance
ORDER BY distance
