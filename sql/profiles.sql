-- How functions that read pages are planned, whatever the session sets. In the definition of a function,
-- SET profile = NAME stands for the settings below that name. Functions that it calls inherit them.
--
-- All but the last keep one generic plan of index scans. The planner cannot estimate arrays, a new plan
-- takes longer than the query, and a plan made while a table is small must not read all of it later.

-- Arrays are joined by hash where the planner expects many values.
by_index:
    SET plan_cache_mode = force_generic_plan SET jit = off SET max_parallel_workers_per_gather = 0
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
    SET enable_hashjoin = on SET enable_sort = on

-- Each row is looked up in the index that has the order of the query: nothing else is read or sorted.
in_order:
    SET plan_cache_mode = force_generic_plan SET jit = off SET max_parallel_workers_per_gather = 0
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
    SET enable_hashjoin = off SET enable_sort = off

-- A thousand values of an array and a thousand rows are a million pairs, if they are not joined by hash.
by_hash:
    SET plan_cache_mode = force_generic_plan SET jit = off SET max_parallel_workers_per_gather = 0
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
    SET enable_hashjoin = on SET enable_sort = on SET enable_nestloop = off

-- Planned with its values, because a cluster can plan no other INSERT ... SELECT.
to_insert:
    SET plan_cache_mode = auto SET jit = off SET max_parallel_workers_per_gather = 0
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
    SET enable_hashjoin = on SET enable_sort = off
