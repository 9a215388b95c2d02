-- Who else works on the task waits, and then goes on after this batch.
SELECT last_page
FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s AND terms = %(terms)s
FOR UPDATE
