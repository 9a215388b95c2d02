SELECT pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('pgsimhash.pages', 'page_id'))
FROM pg_catalog.generate_series(1, %(count)s)
