SELECT coalesce(max(page_id), 0) FROM pgsimhash.pages WHERE collection_id = %(collection_id)s
