SELECT pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('pgsimhash.runs', 'run_id'))
