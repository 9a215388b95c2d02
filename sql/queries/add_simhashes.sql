SELECT pgsimhash.add_simhashes(%(collection)s::text, %(simhashes)s::bigint[])
