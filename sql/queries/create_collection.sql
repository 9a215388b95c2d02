INSERT INTO pgsimhash.collections (name, scheme, layout)
VALUES (%(name)s, %(scheme)s, %(layout)s)
ON CONFLICT (name) DO NOTHING
