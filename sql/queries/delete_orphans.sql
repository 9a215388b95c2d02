DELETE FROM pgsimhash.simhashes AS s
USING unnest(%(simhashes)s::bigint[]) AS o (simhash)
WHERE s.prefix_1 = pgsimhash.prefix(o.simhash, 1, %(collection_id)s)
    AND s.simhash = o.simhash
    AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS p
        WHERE p.collection_id = %(collection_id)s AND p.simhash = o.simhash
    )
