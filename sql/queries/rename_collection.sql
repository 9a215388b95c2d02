SELECT pgsimhash.rename_collection(%(old)s::text, %(new)s::text, %(swap)s::boolean)
