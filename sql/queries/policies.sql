-- The version is read with the policies, so that a change in between is noticed the next time.
SELECT
    c.policies_version, p.host, p.path, p.distance, p.verify, p.scope, p.newest, p.max_age,
    p.canonical_link, p.keep_first, p.min_words, p.expire_after, p.set_at
FROM pgsimhash.collections AS c
LEFT JOIN pgsimhash.policies AS p USING (collection_id)
WHERE c.collection_id = %(collection_id)s
ORDER BY p.host COLLATE "C", p.path COLLATE "C"
