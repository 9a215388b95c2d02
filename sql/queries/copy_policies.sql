INSERT INTO pgsimhash.policies (
    collection_id, host, path, distance, verify, scope, newest, max_age, canonical_link, keep_first,
    min_words, expire_after
)
SELECT
    %(collection_id)s, host, path, distance, verify, scope, newest, max_age, canonical_link,
    keep_first, min_words, expire_after
FROM pgsimhash.policies
WHERE collection_id = %(source_id)s
ORDER BY policy_id
ON CONFLICT ON CONSTRAINT policies_pattern_key DO NOTHING
