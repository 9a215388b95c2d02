-- The invariants of the rows of a collection, and the repair of violations.

-- A row that contradicts the others, and how a repair changes it.
CREATE TYPE pgsimhash.violation AS (
    reason text, page_id bigint, url text, simhash bigint, repair text
);

-- The rows of a collection that contradict each other, optionally repaired; in slices for large
-- collections.
--
-- One slice of the pages by their ids, in one snapshot. Index lookups are forced, so that a slice
-- takes a bounded time. Only a repair takes the collection's lock.
CREATE FUNCTION pgsimhash.check_collection(
    repair boolean DEFAULT false, slice integer DEFAULT 0, slices integer DEFAULT 1,
    collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.violation
    LANGUAGE plpgsql ${in_order} AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    first_page bigint;
    last_page bigint;
    violations pgsimhash.violation[];
BEGIN
    IF (slices >= 1 AND slice BETWEEN 0 AND slices - 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'there is no slice % of %', slice, slices
            USING ERRCODE = 'PS010', HINT = 'Slices are counted from 0.';
    END IF;
    IF repair THEN
        PERFORM pgsimhash._lock_collections(ARRAY[own_id], 3);
    ELSE
        PERFORM pgsimhash._check_row_security();
    END IF;
    SELECT
        div((slices - slice) * o.lowest::numeric + slice * (o.highest + 1::numeric), slices),
        div((slices - slice - 1) * o.lowest::numeric + (slice + 1) * (o.highest + 1::numeric), slices)
            - 1
    INTO first_page, last_page
    FROM (
        SELECT coalesce(min(p.page_id), 0) AS lowest, coalesce(max(p.page_id), 0) AS highest
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id
    ) AS o;
    -- Rows of last_seen may be beyond the pages; a repair that removes them moves no slice.
    first_page := CASE WHEN slice > 0 THEN first_page ELSE -9223372036854775808 END;
    last_page := CASE WHEN slice < slices - 1 THEN last_page ELSE 9223372036854775807 END;
    -- A cluster could not run it with the variables of the function. Each row is looked up by the
    -- order of an index: the planner expects no row of a collection that is newer than its statistics.
    EXECUTE $query$
        SELECT array_agg(v::pgsimhash.violation ORDER BY v.reason, v.page_id)
        FROM (
            -- A lookup misses the page.
            SELECT 'simhash_missing' AS reason, p.page_id, p.url, p.simhash,
                'the page is indexed' AS repair
            FROM (
                SELECT p.page_id, p.url, p.simhash, p.prefix_1
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = $1 AND p.page_id BETWEEN $2 AND $3
                    AND NOT p.indexed
                ORDER BY p.collection_id, p.page_id
                OFFSET 0
            ) AS p
            WHERE (
                SELECT true
                FROM pgsimhash.pages AS f
                WHERE f.indexed
                    AND f.prefix_1 BETWEEN p.prefix_1 AND p.prefix_1
                    AND f.simhash = p.simhash
                ORDER BY f.prefix_1
                LIMIT 1
            ) IS NULL
            UNION ALL
            SELECT CASE WHEN p.computed IS NULL THEN 'original_missing' ELSE 'distance_wrong' END,
                p.page_id, p.url, p.simhash,
                CASE WHEN p.computed IS NULL THEN 'the page becomes an original'
                    ELSE 'the distance is computed again' END
            FROM (
                SELECT p.page_id, p.url, p.simhash, p.distance, (
                    SELECT pgsimhash.hamming_distance(p.simhash, o.simhash)
                    FROM pgsimhash.pages AS o
                    WHERE o.collection_id = $1
                        AND o.page_id BETWEEN p.duplicate_of AND p.duplicate_of
                        AND o.page_id < p.page_id
                    ORDER BY o.page_id
                    LIMIT 1
                ) AS computed
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = $1 AND p.page_id BETWEEN $2 AND $3
                    AND p.duplicate_of IS NOT NULL
                ORDER BY p.collection_id, p.page_id
                OFFSET 0
            ) AS p
            WHERE p.computed IS NULL OR p.computed IS DISTINCT FROM p.distance::integer
            UNION ALL
            SELECT 'seen_orphaned', s.page_id, NULL, NULL, 'the row of last_seen is removed'
            FROM pgsimhash.last_seen AS s
            WHERE s.collection_id = $1 AND s.page_id BETWEEN $2 AND $3
                AND (
                    SELECT true
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = $1 AND p.page_id BETWEEN s.page_id AND s.page_id
                    ORDER BY p.page_id
                    LIMIT 1
                ) IS NULL
        ) AS v
    $query$ INTO violations USING own_id, first_page, last_page;
    IF repair AND cardinality(violations) > 0 THEN
        PERFORM pgsimhash._index_simhashes(own_id, array_agg(DISTINCT v.simhash))
        FROM unnest(violations) AS v
        WHERE v.reason = 'simhash_missing';
        UPDATE pgsimhash.pages AS p
        SET (duplicate_of, distance) = (
            SELECT o.page_id, pgsimhash.hamming_distance(p.simhash, o.simhash)
            FROM pgsimhash.pages AS o
            WHERE o.collection_id = own_id
                AND o.page_id = p.duplicate_of
                AND o.page_id < p.page_id
        )
        FROM unnest(violations) AS v
        WHERE v.reason IN ('original_missing', 'distance_wrong')
            AND p.collection_id = own_id AND p.page_id = v.page_id;
        DELETE FROM pgsimhash.last_seen AS s
        USING unnest(violations) AS v
        WHERE v.reason = 'seen_orphaned'
            AND s.collection_id = own_id AND s.page_id = v.page_id;
    END IF;
    RETURN QUERY SELECT * FROM unnest(violations);
END
$$;
