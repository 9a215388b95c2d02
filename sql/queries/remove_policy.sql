SELECT pgsimhash.remove_policy(%(collection)s::text, %(pattern)s::text)
