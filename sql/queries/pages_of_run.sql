-- In the order of the ids from where the last batch ended, so that nothing is read twice.
SELECT p.page_id
FROM pgsimhash.runs AS r
JOIN pgsimhash.pages AS p
    ON p.collection_id = r.collection_id
    AND p.page_id BETWEEN greatest(r.first_page, %(after_page)s + 1) AND r.last_page
    AND p.run_id = r.run_id
WHERE r.run_id = %(run_id)s AND r.collection_id = %(collection_id)s
ORDER BY p.page_id
LIMIT %(batch)s
