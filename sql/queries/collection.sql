SELECT collection_id, name, scheme, layout, next_layout, default_distance
FROM pgsimhash.collections
WHERE name = %(name)s
