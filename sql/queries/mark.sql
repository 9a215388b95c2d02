SELECT pgsimhash.mark(%(collection)s::text, %(a)s::text, %(b)s::text, %(same)s::boolean)
