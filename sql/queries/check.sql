-- objects --
-- What the schema has, and whether each can be relied on; NULL where somebody builds indexes of the
-- table at this moment. What an index is on is compared elsewhere.
SELECT
    'index' AS kind, t.relname::text AS table, c.relname::text AS name,
    CASE WHEN NOT EXISTS (
        SELECT FROM pg_catalog.pg_stat_progress_create_index AS b WHERE b.relid = i.indrelid
    ) THEN i.indisvalid AND i.indisready AND i.indislive END AS sound,
    pg_catalog.pg_get_indexdef(i.indexrelid) AS definition
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = %(schema)s::text
UNION ALL
SELECT 'constraint', t.relname::text, o.conname::text, o.convalidated, NULL
FROM pg_catalog.pg_constraint AS o
JOIN pg_catalog.pg_class AS t ON t.oid = o.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = %(schema)s::text
UNION ALL
SELECT 'trigger', t.relname::text, g.tgname::text, g.tgenabled IN ('O', 'A'), NULL
FROM pg_catalog.pg_trigger AS g
JOIN pg_catalog.pg_class AS t ON t.oid = g.tgrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = %(schema)s::text
UNION ALL
-- Of those that have to be there: only the server knows which types the names of types mean.
SELECT 'function', '', f.signature, true, NULL
FROM pg_catalog.unnest(%(functions)s::text[]) AS f (signature)
WHERE pg_catalog.to_regprocedure(pg_catalog.format('%%I.%%s', %(schema)s::text, f.signature))
    IS NOT NULL
UNION ALL
SELECT 'table', '', t.relname::text, true, NULL
FROM pg_catalog.pg_class AS t
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = %(schema)s::text AND t.relkind IN ('r', 'p')
UNION ALL
SELECT
    'column', t.relname::text, a.attname::text, a.attgenerated = 's' OR a.attidentity <> '', NULL
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_class AS t ON t.oid = a.attrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = %(schema)s::text AND t.relkind IN ('r', 'p') AND NOT a.attisdropped

-- check_row_security --
SELECT pgsimhash._check_row_security()

-- layouts --
-- The deployed layouts; used says whether a collection has one that is not still being made.
SELECT l.name, EXISTS (
    SELECT FROM pgsimhash.collections AS c
    WHERE c.layout = l.name AND NOT EXISTS (
        SELECT FROM pgsimhash.rebuilds AS r WHERE r.collection_id = c.collection_id
    )
) AS used
FROM pgsimhash.layouts AS l
ORDER BY l.suffix, l.name

-- all_collections --
SELECT
    c.collection_id, c.name, c.scheme, c.layout, c.default_distance, c.keep_markdown,
    c.normalize_urls, r.source_id
FROM pgsimhash.collections AS c LEFT JOIN pgsimhash.rebuilds AS r USING (collection_id)
ORDER BY c.collection_id

-- index_plans --
-- Until the transaction ends each row is looked for through an index, whatever the planner thinks.
SELECT
    pg_catalog.set_config('enable_seqscan', 'off', true),
    pg_catalog.set_config('enable_bitmapscan', 'off', true),
    pg_catalog.set_config('enable_hashjoin', 'off', true),
    pg_catalog.set_config('enable_mergejoin', 'off', true),
    pg_catalog.set_config('enable_sort', 'off', true),
    pg_catalog.set_config('enable_incremental_sort', 'off', true),
    pg_catalog.set_config('max_parallel_workers_per_gather', '0', true),
    pg_catalog.set_config('jit', 'off', true)

-- blocks --
SELECT coalesce(
    pg_catalog.pg_relation_size(pg_catalog.to_regclass(%(table)s::text), 'main')
        / pg_catalog.current_setting('block_size')::bigint,
    0
)

-- unindexed_pages --
-- What a scan of the table finds, and the index that begins with a column does not.
SELECT p.collection_id, p.page_id, p.url
FROM pgsimhash.pages AS p
LEFT JOIN LATERAL (
    SELECT k.page_id
    FROM pgsimhash.pages AS k
    WHERE k.collection_id = p.collection_id AND (k.{key}, k.page_id) >= (p.{key}, p.page_id)
    ORDER BY k.{key}, k.page_id
    LIMIT 1
) AS f ON true
WHERE p.ctid >= %(first)s::pg_catalog.tid AND p.ctid < %(beyond)s::pg_catalog.tid
    AND p.collection_id = ANY (%(collection_ids)s::integer[])
    AND f.page_id IS DISTINCT FROM p.page_id

-- unindexed_simhashes --
SELECT s.collection_id, s.simhash
FROM {table} AS s
LEFT JOIN LATERAL (
    SELECT k.simhash, k.{column} AS prefix
    FROM {table} AS k
    WHERE (k.{column}, k.simhash) >= (s.{column}, s.simhash)
    ORDER BY k.{column}, k.simhash
    LIMIT 1
) AS f ON true
WHERE s.ctid >= %(first)s::pg_catalog.tid AND s.ctid < %(beyond)s::pg_catalog.tid
    AND s.collection_id = ANY (%(collection_ids)s::integer[])
    AND (f.simhash IS DISTINCT FROM s.simhash OR f.prefix IS DISTINCT FROM s.{column})

-- wrong_prefixes --
SELECT s.collection_id, s.simhash
FROM {table} AS s
WHERE s.ctid >= %(first)s::pg_catalog.tid AND s.ctid < %(beyond)s::pg_catalog.tid
    AND s.collection_id = ANY (%(collection_ids)s::integer[])
    AND s.{column} <> {prefix}(s.simhash, %(permutation)s::integer, s.collection_id)

-- is_generated --
SELECT a.attgenerated = 's' AS generated
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_class AS t ON t.oid = a.attrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = %(schema)s::text AND t.relname = %(table)s::text
    AND a.attname = %(column)s::text

-- fill_prefixes --
-- Any change of a row makes the server compute its generated columns again.
UPDATE {table} AS s
SET simhash = s.simhash
WHERE s.ctid >= %(first)s::pg_catalog.tid AND s.ctid < %(beyond)s::pg_catalog.tid
    AND s.collection_id = ANY (%(collection_ids)s::integer[])
    AND s.{column} <> {prefix}(s.simhash, %(permutation)s::integer, s.collection_id)

-- set_prefixes --
-- The same where the column is not generated any more.
UPDATE {table} AS s
SET {column} = {prefix}(s.simhash, %(permutation)s::integer, s.collection_id)
WHERE s.ctid >= %(first)s::pg_catalog.tid AND s.ctid < %(beyond)s::pg_catalog.tid
    AND s.collection_id = ANY (%(collection_ids)s::integer[])
    AND s.{column} <> {prefix}(s.simhash, %(permutation)s::integer, s.collection_id)

-- pages_without_simhash --
SELECT p.collection_id, p.page_id, p.url, p.simhash
FROM pgsimhash.pages AS p
LEFT JOIN LATERAL (
    SELECT true AS found
    FROM {table} AS s
    WHERE s.prefix_1 = {prefix}(p.simhash, 1, p.collection_id) AND s.simhash = p.simhash
    LIMIT 1
) AS f ON true
WHERE p.ctid >= %(first)s::pg_catalog.tid AND p.ctid < %(beyond)s::pg_catalog.tid
    AND p.collection_id = ANY (%(collection_ids)s::integer[])
    AND f.found IS NULL

-- put_simhashes --
SELECT pgsimhash._put_simhashes(%(collection_id)s::integer, %(simhashes)s::bigint[], false)

-- note_load --
SELECT pgsimhash._note_load(%(collection_id)s::integer)

-- simhashes_without_page --
SELECT s.collection_id, s.simhash
FROM {table} AS s
LEFT JOIN LATERAL (
    SELECT true AS found
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = s.collection_id AND p.simhash BETWEEN s.simhash AND s.simhash
    ORDER BY p.simhash, p.page_id
    LIMIT 1
) AS f ON true
WHERE s.ctid >= %(first)s::pg_catalog.tid AND s.ctid < %(beyond)s::pg_catalog.tid
    AND s.collection_id = ANY (%(collection_ids)s::integer[])
    AND NOT s.bare
    AND f.found IS NULL

-- drop_simhashes --
SELECT pgsimhash._drop_simhashes(%(collection_id)s::integer, %(simhashes)s::bigint[], false)

-- stray_simhashes --
-- The collections with simhashes in the table of a layout that is not theirs, or that are gone: from
-- one to the next by the first index.
WITH RECURSIVE own AS (
    (
        SELECT s.prefix_1 >> 40 AS collection_id
        FROM {table} AS s
        ORDER BY s.prefix_1, s.simhash
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT s.prefix_1 >> 40
        FROM {table} AS s
        WHERE s.prefix_1 >= (o.collection_id + 1) << 40
        ORDER BY s.prefix_1, s.simhash
        LIMIT 1
    )
    FROM own AS o
    WHERE o.collection_id IS NOT NULL
)
SELECT o.collection_id::integer, c.name, n.simhashes, n.bare
FROM own AS o
LEFT JOIN pgsimhash.collections AS c ON c.collection_id = o.collection_id::integer
CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS simhashes, pg_catalog.count(*) FILTER (WHERE s.bare) AS bare
    FROM {table} AS s
    WHERE s.prefix_1 >= o.collection_id << 40 AND s.prefix_1 < (o.collection_id + 1) << 40
) AS n
WHERE o.collection_id IS NOT NULL
    AND c.layout IS DISTINCT FROM %(layout)s::text
    AND (%(collection_id)s::integer IS NULL OR o.collection_id = %(collection_id)s::integer)

-- drop_strays --
DELETE FROM {table}
WHERE prefix_1 >= %(collection_id)s::bigint << 40 AND prefix_1 < (%(collection_id)s::bigint + 1) << 40
    AND NOT bare

-- stray_pages --
-- The collections that are gone and have pages all the same.
WITH RECURSIVE own AS (
    (
        SELECT p.collection_id
        FROM pgsimhash.pages AS p
        ORDER BY p.collection_id, p.page_id
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT p.collection_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id > o.collection_id
        ORDER BY p.collection_id, p.page_id
        LIMIT 1
    )
    FROM own AS o
    WHERE o.collection_id IS NOT NULL
)
SELECT o.collection_id, n.pages
FROM own AS o
CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS pages
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = o.collection_id
) AS n
WHERE o.collection_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM pgsimhash.collections AS c WHERE c.collection_id = o.collection_id
)

-- wrong_originals --
SELECT
    p.collection_id, p.page_id, p.url, p.duplicate_of, p.distance::integer AS distance,
    CASE
        WHEN o.page_id IS NULL THEN 'original_missing'
        WHEN o.page_id >= p.page_id THEN 'original_later'
        ELSE 'distance_wrong'
    END AS reason,
    pgsimhash.hamming_distance(p.simhash, o.simhash) AS true_distance
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.pages AS o
    ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
WHERE p.ctid >= %(first)s::pg_catalog.tid AND p.ctid < %(beyond)s::pg_catalog.tid
    AND p.collection_id = ANY (%(collection_ids)s::integer[])
    AND p.duplicate_of IS NOT NULL
    AND (
        o.page_id IS NULL
        OR o.page_id >= p.page_id
        OR p.distance::integer
            IS DISTINCT FROM pgsimhash.hamming_distance(p.simhash, o.simhash)
    )

-- reset_originals --
-- As where an original is deleted.
UPDATE pgsimhash.pages
SET duplicate_of = NULL, distance = NULL
WHERE collection_id = %(collection_id)s AND page_id = ANY (%(page_ids)s::bigint[])

-- correct_distances --
UPDATE pgsimhash.pages AS p
SET distance = pgsimhash.hamming_distance(p.simhash, o.simhash)::smallint
FROM pgsimhash.pages AS o
WHERE p.collection_id = %(collection_id)s AND p.page_id = ANY (%(page_ids)s::bigint[])
    AND o.collection_id = p.collection_id AND o.page_id = p.duplicate_of

-- pages_without_run --
SELECT p.collection_id, p.page_id, p.url, p.run_id
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.runs AS r ON r.collection_id = p.collection_id AND r.run_id = p.run_id
WHERE p.ctid >= %(first)s::pg_catalog.tid AND p.ctid < %(beyond)s::pg_catalog.tid
    AND p.collection_id = ANY (%(collection_ids)s::integer[])
    AND p.run_id IS NOT NULL
    AND (p.page_id BETWEEN r.first_page AND r.last_page) IS NOT TRUE
    -- The runs of a collection that is being made come along at the end.
    AND NOT EXISTS (SELECT FROM pgsimhash.rebuilds AS b WHERE b.collection_id = p.collection_id)

-- extend_runs --
-- What they count is corrected afterwards.
INSERT INTO pgsimhash.runs AS r (run_id, collection_id, what, first_page, last_page)
SELECT p.run_id, p.collection_id, 'unknown', pg_catalog.min(p.page_id), pg_catalog.max(p.page_id)
FROM pgsimhash.pages AS p
WHERE p.collection_id = %(collection_id)s AND p.page_id = ANY (%(page_ids)s::bigint[])
    AND p.run_id IS NOT NULL
GROUP BY p.run_id, p.collection_id
ON CONFLICT (collection_id, run_id) DO UPDATE SET
    first_page = least(r.first_page, excluded.first_page),
    last_page = greatest(r.last_page, excluded.last_page)

-- runs_with_pages --
-- Some runs, with what they count, what of that was stored, and how many pages there are of it.
SELECT
    r.run_id, r.what AS run, r.pages, r.new + r.duplicates + r.updated + r.unchanged AS counted,
    r.new + r.duplicates + r.updated AS stored, n.there
FROM (
    SELECT o.*
    FROM pgsimhash.runs AS o
    WHERE o.collection_id = %(collection_id)s AND o.run_id > %(after_run)s
    ORDER BY o.run_id
    LIMIT %(batch)s
) AS r
CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS there
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = r.collection_id
        AND p.page_id BETWEEN r.first_page AND r.last_page
        AND p.run_id = r.run_id
) AS n
ORDER BY r.run_id

-- correct_run --
-- Pages that nobody counted count as new.
UPDATE pgsimhash.runs
SET new = new + %(missing)s::bigint,
    pages = new + %(missing)s::bigint + duplicates + updated + unchanged
WHERE collection_id = %(collection_id)s AND run_id = %(run_id)s

-- seen_without_page --
SELECT s.collection_id, s.page_id
FROM pgsimhash.last_seen AS s
LEFT JOIN pgsimhash.pages AS p ON p.collection_id = s.collection_id AND p.page_id = s.page_id
WHERE s.ctid >= %(first)s::pg_catalog.tid AND s.ctid < %(beyond)s::pg_catalog.tid
    AND s.collection_id = ANY (%(collection_ids)s::integer[])
    AND p.page_id IS NULL

-- forget_seen --
DELETE FROM pgsimhash.last_seen
WHERE collection_id = %(collection_id)s AND page_id = ANY (%(page_ids)s::bigint[])

-- contrary_marks --
-- Two URLs that were called different, and that other marks join.
SELECT m.url_a AS a, m.url_b AS b
FROM pgsimhash.marks AS m
WHERE m.collection_id = %(collection_id)s AND NOT m.same AND EXISTS (
    SELECT
    FROM pgsimhash._marked_same(%(collection)s::text, m.url_a) AS j (url)
    WHERE j.url = m.url_b
)
ORDER BY m.mark_id

-- unanswered_distances --
-- The distances that a collection's layout does not answer: its own, and those of policies.
SELECT a.holder, a.distance::integer AS distance, l.largest_distance::integer AS largest
FROM (
    SELECT 'the collection' AS holder, c.default_distance AS distance, c.layout
    FROM pgsimhash.collections AS c
    WHERE c.collection_id = %(collection_id)s
    UNION ALL
    SELECT
        'the policy for ' || p.host || CASE p.path WHEN '*' THEN '' ELSE p.path END,
        p.distance, c.layout
    FROM pgsimhash.policies AS p JOIN pgsimhash.collections AS c USING (collection_id)
    WHERE p.collection_id = %(collection_id)s
) AS a
JOIN pgsimhash.layouts AS l ON l.name = a.layout
WHERE a.distance > l.largest_distance

-- sequences_behind --
-- What draws numbers that rows have already: sequences do not come along with logical replication,
-- nor with a load of tables alone. They are read after the rows, as they only grow.
SELECT n.table, n.sequence::text AS sequence, n.largest, n.drawn
FROM (
    SELECT t.table, t.largest, t.sequence,
        CASE WHEN pg_catalog.has_sequence_privilege(t.sequence::oid, 'SELECT, USAGE')
            THEN coalesce(pg_catalog.pg_sequence_last_value(t.sequence::pg_catalog.regclass), 0)
        END AS drawn
    FROM (
        SELECT 'pages' AS table, (
            SELECT pg_catalog.max(p.page_id)
            FROM pgsimhash.collections AS c
            CROSS JOIN LATERAL (
                SELECT pg_catalog.max(o.page_id) AS page_id
                FROM pgsimhash.pages AS o
                WHERE o.collection_id = c.collection_id
            ) AS p
        ) AS largest,
        pg_catalog.pg_get_serial_sequence('pgsimhash.pages', 'page_id')::pg_catalog.regclass
            AS sequence
        UNION ALL
        SELECT 'runs', (SELECT pg_catalog.max(r.run_id) FROM pgsimhash.runs AS r),
            pg_catalog.pg_get_serial_sequence('pgsimhash.runs', 'run_id')::pg_catalog.regclass
        UNION ALL
        SELECT 'marks', (SELECT pg_catalog.max(m.mark_id) FROM pgsimhash.marks AS m),
            pg_catalog.pg_get_serial_sequence('pgsimhash.marks', 'mark_id')::pg_catalog.regclass
        UNION ALL
        SELECT 'policies', (SELECT pg_catalog.max(p.policy_id) FROM pgsimhash.policies AS p),
            pg_catalog.pg_get_serial_sequence('pgsimhash.policies', 'policy_id')
                ::pg_catalog.regclass
        UNION ALL
        SELECT 'collections',
            (SELECT pg_catalog.max(c.collection_id)::bigint FROM pgsimhash.collections AS c),
            pg_catalog.pg_get_serial_sequence('pgsimhash.collections', 'collection_id')
                ::pg_catalog.regclass
    ) AS t
) AS n
WHERE n.drawn < n.largest

-- advance_sequence --
SELECT pg_catalog.setval(%(sequence)s::text::pg_catalog.regclass, %(largest)s::bigint)

-- decided_originals --
-- Of some pages, those that count as originals, each beside the earlier one that it should
-- duplicate; only where both were decided when they came.
SELECT p.page_id, p.url, o.page_id AS duplicates, o.url AS original,
    pgsimhash.hamming_distance(p.simhash, o.simhash) AS distance
FROM pgsimhash.pages AS p
JOIN pgsimhash.pages AS o ON o.collection_id = p.collection_id AND o.page_id = %(original)s
WHERE p.collection_id = %(collection_id)s AND p.page_id = %(page_id)s
    AND p.distance IS NULL AND p.run_id IS NOT NULL AND o.run_id IS NOT NULL
