UPDATE pgsimhash.layouts SET indexed = true WHERE name = %(layout)s
