-- What functions share. ${NAME VALUE} stands for the text below NAME, with the value for its parameter.

-- Whether p is the present version of its URL.
present p:
    NOT EXISTS (
        SELECT FROM pgsimhash.pages AS newer
        WHERE newer.collection_id = p.collection_id
            AND newer.url = p.url
            AND newer.page_id > p.page_id
    )

-- Whether p was last seen before a time.
unseen_since moment:
    p.fetched_at < moment AND NOT EXISTS (
        SELECT FROM pgsimhash.last_seen AS s
        WHERE s.collection_id = p.collection_id AND s.page_id = p.page_id AND s.seen_at >= moment
    )

-- A page by its id. An order by equal values would require no index; that of a range (BETWEEN) requires
-- the primary key, and the limit a lookup for each id. Functions require other indexes likewise.
page id:
    LATERAL (
        SELECT n.*
        FROM pgsimhash.pages AS n
        WHERE n.collection_id = own_id AND n.page_id BETWEEN id AND id
        ORDER BY n.page_id
        LIMIT 1
    )

-- The present version of a URL. An argument has the collation of the caller's column, with which a
-- comparison could use no index.
newest of_url:
    LATERAL (
        SELECT n.*
        FROM pgsimhash.pages AS n
        WHERE n.collection_id = own_id AND n.url COLLATE "default" BETWEEN of_url AND of_url
        ORDER BY n.url DESC, n.page_id DESC
        LIMIT 1
    )

-- How functions that read pages are planned, whatever the session sets: ${by_index} and so on, in their
-- definitions. Functions that they call inherit it.
--
-- All but the last keep one generic plan of index scans. The planner cannot estimate arrays, a new plan
-- takes longer than the query, and a plan made while a table is small must not read all of it later.

index_scans:
    SET search_path = pg_catalog, pg_temp SET jit = off SET max_parallel_workers_per_gather = 0
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off

-- Arrays are joined by hash where the planner expects many values.
by_index:
    ${index_scans} SET plan_cache_mode = force_generic_plan SET enable_hashjoin = on
    SET enable_sort = on

-- Each row is looked up in the index that has the order of the query: nothing else is read or sorted.
in_order:
    ${index_scans} SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off
    SET enable_sort = off

-- A thousand values of an array and a thousand rows are a million pairs, if they are not joined by hash.
by_hash:
    ${by_index} SET enable_nestloop = off

-- Planned with its values, because a cluster can plan no other INSERT ... SELECT.
to_insert:
    ${index_scans} SET plan_cache_mode = auto SET enable_hashjoin = on SET enable_sort = off
