SELECT indexed FROM pgsimhash.layouts WHERE name = %(layout)s
