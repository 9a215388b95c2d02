INSERT INTO pgsimhash.collections (name, scheme, layout, default_distance, keep_markdown)
VALUES (%(name)s, %(scheme)s, %(layout)s, %(distance)s, %(keep_markdown)s)
ON CONFLICT DO NOTHING
