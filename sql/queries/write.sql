-- draw_run --
SELECT pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('pgsimhash.runs', 'run_id'))

-- run_pages --
SELECT pg_catalog.sum(pages) FROM pgsimhash.runs WHERE run_id = %(run_id)s

-- add_simhashes --
SELECT pgsimhash.add_simhashes(%(collection)s::text, %(simhashes)s::bigint[])
