SELECT pgsimhash.has_near_duplicate(
    %(simhash)s::bigint, %(distance)s::integer, %(collection)s::text
)
