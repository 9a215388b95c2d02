UPDATE pgsimhash.tasks
SET terms = %(terms)s, last_page = %(last_page)s, updated_at = pg_catalog.now()
WHERE collection_id = %(collection_id)s AND what = %(what)s
