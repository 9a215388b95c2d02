-- The hosts with the most duplicates; all_hosts counts those with any page.
SELECT
    coalesce(host, '') AS host,
    pg_catalog.count(*) AS pages,
    pg_catalog.count(*) FILTER (WHERE distance IS NOT NULL) AS duplicates,
    coalesce(pg_catalog.sum(html_bytes) FILTER (WHERE distance IS NOT NULL), 0)::bigint
        AS duplicate_bytes,
    pg_catalog.count(*) OVER () AS all_hosts
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s
GROUP BY host
ORDER BY duplicates DESC, pages DESC, host
LIMIT %(limit)s
