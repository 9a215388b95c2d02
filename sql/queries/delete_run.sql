DELETE FROM pgsimhash.runs WHERE run_id = %(run_id)s AND collection_id = %(collection_id)s
