SELECT pgsimhash.forget_simhashes(%(collection)s::text, %(simhashes)s::bigint[])
