-- What the deleted pages were the originals of stays, as pages that duplicate nothing.
WITH deleted AS (
    DELETE FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND url = %(url)s
    RETURNING page_id, simhash
), freed AS (
    UPDATE pgsimhash.pages
    SET duplicate_of = NULL, distance = NULL
    WHERE collection_id = %(collection_id)s
        AND url <> %(url)s
        AND duplicate_of IN (SELECT page_id FROM deleted)
)
SELECT simhash FROM deleted
