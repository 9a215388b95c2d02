DELETE FROM pgsimhash.boilerplate_hosts WHERE version = %(version)s
