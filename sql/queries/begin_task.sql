-- The task as it is, begun where there is none.
WITH begun AS (
    INSERT INTO pgsimhash.tasks (collection_id, what, terms)
    VALUES (%(collection_id)s, %(what)s, %(terms)s)
    ON CONFLICT (collection_id, what) DO NOTHING
    RETURNING terms, last_page, true AS begun
)
SELECT terms, last_page, begun FROM begun
UNION ALL
SELECT terms, last_page, false
FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s
LIMIT 1
