-- policies --
SELECT
    host, path, distance, verify, scope, window_size, max_age, canonical_link, max_copies, min_tokens,
    expire_after, refetch_after, set_at
FROM pgsimhash.policies
WHERE collection_id = %(collection_id)s
ORDER BY host COLLATE "C", path COLLATE "C"

-- settings_for --
-- Whether there are any policies, and their settings for URLs.
SELECT
    e.policies, s.url_numbers, s.distance, s.verify, s.scope, s.window_size, s.max_age, s.canonical_link,
    s.max_copies, s.min_tokens, s.expire_after, s.refetch_after
FROM (
    SELECT EXISTS (SELECT FROM pgsimhash.policies AS p WHERE p.collection_id = %(collection_id)s)
) AS e (policies)
LEFT JOIN pgsimhash._settings_for(%(collection_id)s::integer, %(urls)s::text[]) AS s ON true

-- set_policy --
SELECT
    host, path, distance, verify, scope, window_size, max_age, canonical_link, max_copies, min_tokens,
    expire_after, refetch_after, set_at
FROM pgsimhash.set_policy(
    %(collection)s::text, %(pattern)s::text, %(distance)s::integer, %(verify)s::boolean,
    %(scope)s::text, %(window_size)s::integer, %(max_age)s::interval, %(canonical_link)s::boolean,
    %(max_copies)s::integer, %(min_tokens)s::integer, %(expire_after)s::interval, %(refetch_after)s::interval
)

-- remove_policy --
SELECT pgsimhash.remove_policy(%(collection)s::text, %(pattern)s::text)
