-- Who else works on the task waits, and then goes on after this batch.
SELECT last_page, terms = %(terms)s
FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s
FOR UPDATE
