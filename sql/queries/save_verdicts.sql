-- An original that someone deleted since it was looked up is none.
UPDATE pgsimhash.pages AS p
SET duplicate_of = n.duplicate_of, distance = n.distance
FROM (
    SELECT
        u.page_id, o.page_id AS duplicate_of,
        CASE WHEN u.duplicate_of IS NULL OR o.page_id IS NOT NULL THEN u.distance END AS distance
    FROM unnest(
        %(page_id)s::bigint[], %(duplicate_of)s::bigint[], %(distance)s::smallint[]
    ) AS u (page_id, duplicate_of, distance)
    LEFT JOIN pgsimhash.pages AS o
        ON o.collection_id = %(collection_id)s AND o.page_id = u.duplicate_of
) AS n
WHERE p.collection_id = %(collection_id)s
    AND p.page_id = n.page_id
    AND (p.duplicate_of, p.distance) IS DISTINCT FROM (n.duplicate_of, n.distance)
