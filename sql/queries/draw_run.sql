SELECT nextval(pg_get_serial_sequence('pgsimhash.runs', 'run_id'))
