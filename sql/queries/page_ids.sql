SELECT nextval(pg_get_serial_sequence('pgsimhash.pages', 'page_id'))
FROM generate_series(1, %(count)s)
