DELETE FROM pgsimhash.boilerplates WHERE version = %(version)s
