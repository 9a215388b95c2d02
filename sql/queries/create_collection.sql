INSERT INTO pgsimhash.collections (name, scheme, layout, default_distance)
VALUES (%(name)s, %(scheme)s, %(layout)s, %(distance)s)
ON CONFLICT (name) DO NOTHING
