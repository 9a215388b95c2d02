SELECT pgsimhash.unmark(%(collection)s::text, %(a)s::text, %(b)s::text)
