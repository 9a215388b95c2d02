-- The beginning of the Markdown of some pages.
SELECT page_id, pg_catalog.left(markdown, %(chars)s) AS markdown
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND page_id = ANY (%(page_ids)s)
    AND markdown IS NOT NULL
