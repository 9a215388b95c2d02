SELECT
    host, path, distance, verify, scope, newest, max_age, canonical_link, keep_first, min_words,
    expire_after, set_at
FROM pgsimhash.set_policy(
    %(collection)s::text, %(pattern)s::text, %(distance)s::integer, %(verify)s::boolean,
    %(scope)s::text, %(newest)s::integer, %(max_age)s::interval, %(canonical_link)s::boolean,
    %(keep_first)s::integer, %(min_words)s::integer, %(expire_after)s::interval
)
