-- From here on the triggers mirror what is written.
UPDATE pgsimhash.collections
SET next_layout = %(layout)s
WHERE collection_id = %(collection_id)s
