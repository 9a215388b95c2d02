DELETE FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s
