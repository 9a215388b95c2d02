SELECT digest FROM pgsimhash.boilerplates WHERE version = %(version)s FOR NO KEY UPDATE
