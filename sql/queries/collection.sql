SELECT collection_id, name, scheme, layout, next_layout, default_distance, keep_markdown
FROM pgsimhash.collections
WHERE name = %(name)s
