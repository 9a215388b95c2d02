SELECT pgsimhash.simhash_slice(%(collection)s::text, %(number)s::integer, %(slices)s::integer)
