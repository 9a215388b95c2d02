SELECT run_id, what, started_at, finished_at, pages, new, duplicates, unchanged
FROM pgsimhash.runs
WHERE collection_id = %(collection_id)s
ORDER BY run_id DESC
