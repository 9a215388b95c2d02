SELECT collection_id, name, scheme, layout, next_layout, default_distance, keep_markdown
FROM pgsimhash.collections
WHERE scheme = %(scheme)s
ORDER BY collection_id
