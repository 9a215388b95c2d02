SELECT pgsimhash.copy_marks(%(source)s::text, %(collection)s::text)
