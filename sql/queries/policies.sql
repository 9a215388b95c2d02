-- policies --
-- The version is read with the policies, so that a change in between is noticed the next time.
SELECT
    c.policies_version, p.host, p.path, p.distance, p.verify, p.scope, p.newest, p.max_age,
    p.canonical_link, p.keep_first, p.min_words, p.expire_after, p.set_at
FROM pgsimhash.collections AS c
LEFT JOIN pgsimhash.policies AS p USING (collection_id)
WHERE c.collection_id = %(collection_id)s
ORDER BY p.host COLLATE "C", p.path COLLATE "C"

-- set_policy --
SELECT
    host, path, distance, verify, scope, newest, max_age, canonical_link, keep_first, min_words,
    expire_after, set_at
FROM pgsimhash.set_policy(
    %(collection)s::text, %(pattern)s::text, %(distance)s::integer, %(verify)s::boolean,
    %(scope)s::text, %(newest)s::integer, %(max_age)s::interval, %(canonical_link)s::boolean,
    %(keep_first)s::integer, %(min_words)s::integer, %(expire_after)s::interval
)

-- remove_policy --
SELECT pgsimhash.remove_policy(%(collection)s::text, %(pattern)s::text)
