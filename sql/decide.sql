-- What writers ask before they decide about a batch.

-- Internal: for the functions above and for the package, and may change with any release.

-- For each query the original that counts, and how many pages count, up to keep_first for each
-- simhash. Which original counts (decide in pgsimhash/store/decisions.py says it for the pages of a
-- batch and those that arrived meanwhile, in the same order): a page that came before before_page
--   1. in the collections compared with,
--   2. on the page's host, where the scope is the host,
--   3. fetched not longer before it than is asked for,
--   4. among the newest, where only these count,
--   5. neither marked as different from it, nor found to duplicate one of its collection that is;
--      what is at the page's own URL counts all the same, where that is known elsewhere only,
--   6. not the page itself: where its URL is known in its own collection, neither what is at the URL,
--      nor a copy of it, that is what came after its first version and is as near to the version
--      before,
--   7. with a sketch like the page's beyond the trusted distance, where both have one.
-- Of these the nearest is the original, and of equally near ones the one that came first. A simhash
-- without a page counts after them, if nothing is asked of its page by 2 to 5.
-- Which simhashes are near may be given, from what somebody remembers: near_to has the query of each,
-- near_simhashes what is near to it, and then it is one collection. Some may be gone.
-- Matches go to queries by a hash: where a whole batch is near to much, a loop would go through the
-- batch for each match.
-- Planned once, for planning takes longer than the lookup. BETWEEN is there for the order that only
-- one index has: a plan made while the table is small must not walk another one later.
CREATE FUNCTION pgsimhash._nearest(
    own_id integer, compared_ids integer[], before_page bigint, queries bigint[],
    sketches_high bigint[], sketches_low bigint[], hosts text[], sinces timestamptz[],
    oldest_pages bigint[], keep_firsts integer[], urls text[], versions_before bigint[],
    first_pages bigint[], max_distance integer, near_to bigint[] DEFAULT NULL,
    near_simhashes bigint[] DEFAULT NULL
) RETURNS TABLE (
    query_number bigint, distance integer, page_id bigint, url text, html_digest bytea,
    copies integer
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    SET enable_nestloop = off
    AS $$
#variable_conflict use_column
DECLARE
    was_asked constant boolean := near_simhashes IS NULL;
    distinct_queries bigint[];
    near_in integer[];
    aparts jsonb[];
BEGIN
    IF was_asked THEN
        distinct_queries := ARRAY(SELECT DISTINCT u FROM unnest(queries) AS u);
        SELECT
            array_agg(c.collection_id), array_agg(distinct_queries[m.query_number]),
            array_agg(m.simhash)
        INTO near_in, near_to, near_simhashes
        FROM unnest(compared_ids) AS c (collection_id)
        -- One that was deleted meanwhile has none.
        JOIN pgsimhash.collections AS o USING (collection_id)
        CROSS JOIN LATERAL pgsimhash.near_duplicates(distinct_queries, max_distance, o.name) AS m;
    END IF;
    IF near_simhashes IS NULL OR near_simhashes = '{}' THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id AND NOT m.same) THEN
        aparts := ARRAY(
            SELECT (
                SELECT jsonb_agg(o.url)
                FROM pgsimhash._marks_of(own_id, u.url) AS o
                WHERE NOT o.same
            )
            FROM unnest(urls) WITH ORDINALITY AS u (url, query_number)
            ORDER BY u.query_number
        );
    END IF;
    RETURN QUERY
    SELECT DISTINCT ON (q.query_number)
        q.query_number, m.distance,
        CASE WHEN m.collection_id = own_id THEN p.page_id END,
        p.url, p.html_digest,
        count(*) OVER (PARTITION BY q.query_number)::integer
    FROM (
        SELECT
            coalesce(n.collection_id, own_id) AS collection_id, n.query, n.simhash,
            pgsimhash.hamming_distance(n.simhash, n.query) AS distance
        FROM unnest(near_in, near_to, near_simhashes) AS n (collection_id, query, simhash)
    ) AS m
    JOIN unnest(
        queries, sketches_high, sketches_low, hosts, sinces, oldest_pages, keep_firsts, aparts, urls,
        versions_before, first_pages
    ) WITH ORDINALITY AS q (
        query, sketch_high, sketch_low, host, since, oldest, keep_first, apart, url,
        version_before, first_page, query_number
    )
        ON q.query = m.query
    LEFT JOIN LATERAL (
        SELECT k.page_id, k.url, k.html_digest
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = m.collection_id
            AND k.simhash BETWEEN m.simhash AND m.simhash
            AND k.page_id < before_page
            AND (q.host IS NULL OR k.host = q.host)
            AND (q.since IS NULL OR k.fetched_at >= q.since)
            AND (q.oldest IS NULL OR k.page_id >= q.oldest)
            AND (
                q.apart IS NULL
                OR k.url = q.url
                OR NOT q.apart ? k.url AND NOT EXISTS (
                    SELECT FROM pgsimhash.pages AS o
                    WHERE o.collection_id = k.collection_id
                        AND o.page_id = k.duplicate_of
                        AND q.apart ? o.url
                )
            )
            AND (
                q.version_before IS NULL
                OR k.url <> q.url AND (
                    q.first_page IS NULL
                    OR k.page_id < q.first_page
                    OR pgsimhash.hamming_distance(m.simhash, q.version_before) > max_distance
                )
            )
            AND pgsimhash._verified(
                m.distance, k.sketch_high, k.sketch_low, q.sketch_high, q.sketch_low
            )
        ORDER BY k.simhash, k.page_id
        LIMIT q.keep_first
    ) AS p ON true
    LEFT JOIN LATERAL (
        SELECT true AS found
        FROM pgsimhash.pages AS k
        WHERE p.page_id IS NULL
            AND k.collection_id = m.collection_id
            AND k.simhash BETWEEN m.simhash AND m.simhash
        ORDER BY k.simhash
        LIMIT 1
    ) AS other ON true
    WHERE p.page_id IS NOT NULL
        OR q.host IS NULL AND q.since IS NULL AND q.oldest IS NULL AND q.apart IS NULL
        AND other.found IS NULL
        -- Who remembers simhashes does not know which are gone.
        AND (
            was_asked
            OR pgsimhash.has_near_duplicate(
                m.simhash, 0,
                (SELECT o.name FROM pgsimhash.collections AS o WHERE o.collection_id = own_id)
            )
        )
    ORDER BY q.query_number, m.distance, p.page_id NULLS LAST, m.simhash;
END
$$;

COMMENT ON FUNCTION pgsimhash._nearest(
    integer, integer[], bigint, bigint[], bigint[], bigint[], text[], timestamptz[], bigint[],
    integer[], text[], bigint[], bigint[], integer, bigint[], bigint[]
) IS 'For each query the nearest known simhash that meets what is asked of its page.';

-- Of each URL, and of those marked the same: its newest version before a page, the first one, and
-- which URLs it was marked the same as, or different from. URLs of which nothing is known are left
-- out.
CREATE FUNCTION pgsimhash._known_pages(own_id integer, before_page bigint, urls text[])
RETURNS TABLE (
    url text, page_id bigint, simhash bigint, text_digest bigint, first_page bigint, same text[],
    different text[]
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    marked constant boolean := EXISTS (
        SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id
    );
BEGIN
    RETURN QUERY
    SELECT k.url, k.page_id, k.simhash, k.text_digest, k.first_page, k.same, k.different
    FROM (
        SELECT
            w.url, p.page_id, p.simhash, p.text_digest, p.first_page,
            CASE WHEN marked THEN (
                SELECT array_agg(m.url ORDER BY m.mark_id)
                FROM pgsimhash._marks_of(own_id, w.url) AS m
                WHERE m.same
            ) END AS same,
            CASE WHEN marked THEN (
                SELECT array_agg(m.url ORDER BY m.mark_id)
                FROM pgsimhash._marks_of(own_id, w.url) AS m
                WHERE NOT m.same
            ) END AS different
        FROM (
            SELECT u.url FROM unnest(urls) AS u (url)
            UNION
            SELECT m.url
            FROM unnest(urls) AS u (url)
            CROSS JOIN LATERAL pgsimhash._marks_of(own_id, u.url) AS m
            WHERE marked AND m.same
        ) AS w
        LEFT JOIN LATERAL (
            SELECT
                n.page_id, n.simhash, n.text_digest,
                (
                    SELECT f.page_id
                    FROM pgsimhash.pages AS f
                    WHERE f.collection_id = own_id AND f.url = n.url
                    ORDER BY f.collection_id, f.url, f.page_id
                    LIMIT 1
                ) AS first_page
            FROM pgsimhash.pages AS n
            WHERE n.collection_id = own_id AND n.url = w.url AND n.page_id < before_page
            ORDER BY n.collection_id DESC, n.url DESC, n.page_id DESC
            LIMIT 1
        ) AS p ON true
        OFFSET 0
    ) AS k
    WHERE k.page_id IS NOT NULL OR k.same IS NOT NULL OR k.different IS NOT NULL;
END
$$;

COMMENT ON FUNCTION pgsimhash._known_pages(integer, bigint, text[]) IS
    'The newest and first versions of URLs before a page, and what was said about them.';

-- Copies do not count: a hundred of one story push no other one out.
CREATE FUNCTION pgsimhash._window(
    compared_ids integer[], of_host text, newest integer, before_page bigint
) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT coalesce(
            (
                SELECT n.page_id
                FROM unnest(compared_ids) AS c (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND p.host = of_host
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.page_id DESC
                    LIMIT newest
                ) AS n
                ORDER BY n.page_id DESC
                OFFSET newest - 1
                LIMIT 1
            ),
            (
                SELECT n.page_id
                FROM unnest(compared_ids) AS c (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND of_host IS NULL
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.page_id DESC
                    LIMIT newest
                ) AS n
                ORDER BY n.page_id DESC
                OFFSET newest - 1
                LIMIT 1
            ),
            0
        );
    END;

COMMENT ON FUNCTION pgsimhash._window(integer[], text, integer, bigint) IS
    'The oldest of the newest originals of a host in some collections, or of all originals there '
    'where it is NULL; 0 where there are fewer.';
