INSERT INTO pgsimhash.simhashes (collection_id, simhash)
SELECT %(collection_id)s, simhash FROM unnest(%(simhashes)s::bigint[]) AS s (simhash)
ON CONFLICT DO NOTHING
