UPDATE pgsimhash.collections
SET layout = next_layout, next_layout = NULL, default_distance = %(distance)s
WHERE collection_id = %(collection_id)s AND next_layout = %(layout)s
