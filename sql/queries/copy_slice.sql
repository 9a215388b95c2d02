-- FOR KEY SHARE: a row that someone is deleting is waited for, and one that is copied is deleted
-- from both tables.
INSERT INTO {next} (collection_id, simhash)
SELECT collection_id, simhash
FROM {present}
WHERE prefix_1 >= %(first)s AND prefix_1 < %(beyond)s
ORDER BY prefix_1, simhash
FOR KEY SHARE
ON CONFLICT DO NOTHING
