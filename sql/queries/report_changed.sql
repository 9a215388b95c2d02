-- The pages whose content moved by the most bits, added up from version to version; all_urls
-- counts those with more than one version.
SELECT
    url, pg_catalog.sum(moved)::bigint AS moved, pg_catalog.count(*) + 1 AS versions,
    pg_catalog.count(*) OVER () AS all_urls
FROM (
    SELECT url, pgsimhash.hamming_distance(simhash, pg_catalog.lag(simhash) OVER history) AS moved
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s
    WINDOW history AS (PARTITION BY url ORDER BY page_id)
) AS steps
WHERE moved IS NOT NULL
GROUP BY url
ORDER BY 2 DESC, url
LIMIT %(limit)s
