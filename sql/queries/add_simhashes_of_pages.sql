SELECT pgsimhash.add_simhashes_of_pages(%(collection)s::text, %(simhashes)s::bigint[])
