-- cluster_table --
-- A caller's transaction may ask more than once.
DROP TABLE IF EXISTS pg_temp.pgsimhash_clusters;

CREATE TABLE pg_temp.pgsimhash_clusters (simhash bigint, cluster bigint) ON COMMIT DROP

-- clusters --
-- The present versions of all pages that share a cluster, or else a simhash, with another page.
SELECT member.cluster, member.page_id, member.url, member.simhash, member.fetched_at, member.title,
    member.features
FROM (
    SELECT
        p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.features,
        coalesce(c.cluster, p.simhash) AS cluster,
        pg_catalog.count(*) OVER (PARTITION BY coalesce(c.cluster, p.simhash)) AS pages
    FROM pgsimhash.pages AS p
    LEFT JOIN pg_temp.pgsimhash_clusters AS c USING (simhash)
    WHERE p.collection_id = %(collection_id)s
        AND NOT EXISTS (
            SELECT FROM pgsimhash.pages AS newer
            WHERE newer.collection_id = p.collection_id
                AND newer.url = p.url
                AND newer.page_id > p.page_id
        )
) AS member
WHERE member.pages > 1
ORDER BY member.cluster, member.page_id

-- create_pair_table --
CREATE TABLE {table} (low bigint, high bigint, distance smallint, PRIMARY KEY (low, high))

-- create_cluster_table --
CREATE TABLE {table} (
    cluster_id bigint, page_id bigint PRIMARY KEY, url text, simhash bigint, canonical boolean
)
