-- clusters --
-- The present versions of all pages that share a cluster, or else a simhash, with another page. The
-- clusters come as arrays, because a standby has no temporary tables.
SELECT member.cluster, member.page_id, member.url, member.simhash, member.fetched_at, member.title,
    member.features
FROM (
    SELECT
        p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.features,
        coalesce(c.cluster, p.simhash) AS cluster,
        pg_catalog.count(*) OVER (PARTITION BY coalesce(c.cluster, p.simhash)) AS pages
    FROM pgsimhash.pages AS p
    LEFT JOIN ROWS FROM (
        pg_catalog.unnest(%(simhashes)s::bigint[]), pg_catalog.unnest(%(clusters)s::bigint[])
    ) AS c (simhash, cluster) USING (simhash)
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

-- sharing_pages --
-- The present versions of all pages that share a simhash with another page.
SELECT member.simhash, member.url, member.title
FROM (
    SELECT
        p.simhash, p.page_id, p.url, p.title,
        pg_catalog.count(*) OVER (PARTITION BY p.simhash) AS pages
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = %(collection_id)s
        AND NOT EXISTS (
            SELECT FROM pgsimhash.pages AS newer
            WHERE newer.collection_id = p.collection_id
                AND newer.url = p.url
                AND newer.page_id > p.page_id
        )
) AS member
WHERE member.pages > 1
ORDER BY member.simhash, member.page_id

-- first_pages --
-- The first of the present versions with each simhash. BETWEEN requires an order that only one
-- index has.
SELECT q.simhash, p.url, p.title
FROM pg_catalog.unnest(%(simhashes)s::bigint[]) AS q (simhash)
CROSS JOIN LATERAL (
    SELECT k.url, k.title
    FROM pgsimhash.pages AS k
    WHERE k.collection_id = %(collection_id)s
        AND k.simhash BETWEEN q.simhash AND q.simhash
        AND NOT EXISTS (
            SELECT FROM pgsimhash.pages AS newer
            WHERE newer.collection_id = k.collection_id
                AND newer.url = k.url
                AND newer.page_id > k.page_id
        )
    ORDER BY k.simhash, k.page_id
    LIMIT 1
) AS p

-- create_pair_table --
CREATE TABLE {table} (low bigint, high bigint, distance smallint, PRIMARY KEY (low, high))

-- create_cluster_table --
CREATE TABLE {table} (
    cluster_id bigint, page_id bigint PRIMARY KEY, url text, simhash bigint, canonical boolean
)

-- table_found --
-- The schema in which the caller's search_path creates a table, and the table that it finds.
SELECT
    pg_catalog.current_schema(),
    pg_catalog.to_regclass(%(table)s::pg_catalog.text)::pg_catalog.oid

-- schema_of_table --
SELECT n.nspname
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = %(table)s::oid

-- saved_columns --
-- The columns of the filled table, and whether the table to be replaced has the same; no row
-- if it does not exist.
SELECT
    (
        SELECT pg_catalog.array_agg(n.attname::text ORDER BY n.attnum)
        FROM pg_catalog.pg_attribute AS n
        WHERE n.attrelid = %(filled)s::pg_catalog.regclass::pg_catalog.oid AND n.attnum > 0
    ),
    c.relkind IN ('r', 'p') AND NOT EXISTS (
        SELECT
        FROM (
            SELECT n.attname, n.atttypid
            FROM pg_catalog.pg_attribute AS n
            WHERE n.attrelid = %(filled)s::pg_catalog.regclass::pg_catalog.oid AND n.attnum > 0
        ) AS own
        FULL JOIN (
            SELECT o.attname, o.atttypid
            FROM pg_catalog.pg_attribute AS o
            WHERE o.attrelid = c.oid AND o.attnum > 0 AND NOT o.attisdropped
        ) AS there USING (attname, atttypid)
        WHERE own IS NULL OR there IS NULL
    )
FROM pg_catalog.pg_class AS c
WHERE c.oid = pg_catalog.to_regclass(%(table)s::text)::pg_catalog.oid

-- keep_table --
-- Keeps its columns unchanged without blocking readers.
LOCK TABLE {table} IN ACCESS SHARE MODE

-- hold_rows --
-- Readers see the old rows until the commit, and nobody else replaces them meanwhile.
LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE

-- clear_rows --
DELETE FROM {table}

-- replace_rows --
INSERT INTO {table} ({columns}) SELECT {columns} FROM {filled}

-- drop_filled --
DROP TABLE {filled}

-- present_simhashes --
-- The simhash of the present version of each known URL.
SELECT u.url, p.simhash
FROM pg_catalog.unnest(%(urls)s::text[]) AS u (url)
CROSS JOIN LATERAL (
    SELECT n.simhash
    FROM pgsimhash.pages AS n
    WHERE n.collection_id = %(collection_id)s AND n.url = u.url
    ORDER BY n.collection_id DESC, n.url DESC, n.page_id DESC
    LIMIT 1
) AS p
