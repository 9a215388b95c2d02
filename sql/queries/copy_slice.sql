-- FOR SHARE: a row that someone is changing or deleting is waited for, and what becomes of one that
-- is copied happens in both tables.
INSERT INTO {next} (collection_id, simhash, bare)
SELECT collection_id, simhash, bare
FROM {present}
WHERE prefix_1 >= %(first)s AND prefix_1 < %(beyond)s
ORDER BY prefix_1, simhash
FOR SHARE
ON CONFLICT DO NOTHING
