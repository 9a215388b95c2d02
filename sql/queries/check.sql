-- check_slices --
SELECT 1 + pg_catalog.count(*) / %(rows)s::bigint
FROM pgsimhash.collections AS c
JOIN pgsimhash.pages AS p USING (collection_id)
WHERE c.name = %(collection)s::text

-- check_collection --
SELECT v.reason, v.page_id, v.url, v.simhash, v.repair
FROM pgsimhash.check_collection(
    %(collection)s::text, %(repair)s::boolean, %(number)s::integer, %(slices)s::integer
) AS v
