-- report_distances --
-- The versions that duplicated a known page when they arrived, by distance.
SELECT distance, pg_catalog.count(*) AS pages
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND distance IS NOT NULL
GROUP BY distance
ORDER BY distance

-- report_hosts --
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

-- report_changed --
-- The pages whose content changed by the most bits, summed over versions; all_urls
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

-- report_texts --
-- The beginning of the Markdown of some pages.
SELECT page_id, pg_catalog.left(markdown, %(chars)s) AS markdown
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND page_id = ANY (%(page_ids)s)
    AND markdown IS NOT NULL
