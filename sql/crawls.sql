-- Runs, and two crawls compared.

-- Starts a run, and returns its id for add_pages.
CREATE FUNCTION pgsimhash.start_run(
    label text DEFAULT 'SQL', collection text DEFAULT 'default'
) RETURNS bigint
    LANGUAGE sql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
    INSERT INTO pgsimhash.runs (collection_id, label)
    VALUES (pgsimhash._id_of(collection), coalesce(label, 'SQL'))
    RETURNING run_id;
$$;

-- Ends a run; a later batch continues it.
CREATE FUNCTION pgsimhash.end_run(run_id bigint, collection text DEFAULT 'default') RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM
        pgsimhash._check_runs(collection, ARRAY[run_id]),
        pgsimhash._end_runs(pgsimhash._id_of(collection), ARRAY[run_id]);
END
$$;

-- An error unless the collection has all of these runs, and there is one.
CREATE FUNCTION pgsimhash._check_runs(collection text, run_ids bigint[]) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
BEGIN
    IF run_ids = '{}' OR NOT run_ids <@ ARRAY(
        SELECT r.run_id FROM pgsimhash.runs AS r WHERE r.collection_id = own_id
    ) THEN
        RAISE EXCEPTION 'collection "%" has no run %',
            collection, coalesce(nullif(array_to_string(run_ids, ', ', 'NULL'), ''), 'that ended')
            USING ERRCODE = 'PS021',
            HINT = 'pgsimhash.runs has the runs of all collections; the last argument names one.';
    END IF;
END
$$;

-- What became of the pages between two crawls, each as numbers of runs, by default the last two ended
-- runs. A row for each page that is changed, moved, new, gone, missing or not_visited, the largest
-- changes first; then one with the number of unchanged pages.
--
-- URLs of one address are one page. Its last batch decides: the number is doubled here, and odd if it
-- saw the page. Pages of one text that may have moved are paired in the order of their URLs.
CREATE FUNCTION pgsimhash.compare_crawls(
    earlier bigint[] DEFAULT NULL, later bigint[] DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS TABLE (
    change text, pages bigint, url text, moved_from text, title text, distance integer,
    earlier_page_id bigint, later_page_id bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ${by_hash} AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    ended constant bigint[] := ARRAY(
        SELECT r.run_id FROM pgsimhash.runs AS r
        WHERE r.collection_id = own_id AND r.ended_at IS NOT NULL
        ORDER BY r.run_id DESC
    );
    later_start timestamptz;
BEGIN
    later := coalesce(later, ended[1:1]);
    earlier := coalesce(earlier, ARRAY(
        SELECT u.run_id FROM unnest(ended) AS u (run_id) WHERE u.run_id < ALL (later) LIMIT 1
    ));
    PERFORM pgsimhash._check_runs(collection, earlier), pgsimhash._check_runs(collection, later);
    later_start := (SELECT min(r.started_at) FROM pgsimhash.runs AS r WHERE r.run_id = ANY (later));
    RETURN QUERY
    WITH seen AS MATERIALIZED (
        SELECT DISTINCT ON (g.is_later, address)
            g.is_later, g.batch % 2 = 0 AS is_gone, p.page_id, p.url, coalesce(p.host, '') AS host,
            p.simhash, coalesce(p.text_digest, p.simhash) AS text, p.html_digest, p.title,
            p.fetched_at, coalesce(p.address, p.url) COLLATE "C" AS address
        FROM (
            SELECT
                c.is_later, abs(u.page_id) AS page_id,
                max(2 * s.number + (u.page_id > 0)::integer) AS batch
            FROM (VALUES (false, earlier), (true, later)) AS c (is_later, runs)
            CROSS JOIN LATERAL unnest(c.runs) AS r (run_id)
            JOIN pgsimhash.sightings AS s ON s.collection_id = own_id AND s.run_id = r.run_id
            CROSS JOIN LATERAL unnest(s.page_ids) AS u (page_id)
            GROUP BY c.is_later, abs(u.page_id)
            ORDER BY abs(u.page_id)
        ) AS g
        CROSS JOIN ${page g.page_id} AS p
        ORDER BY g.is_later, address, g.batch DESC, p.page_id DESC
    ),
    -- The earlier pages that were neither seen later nor due when the later run began.
    fresh AS MATERIALIZED (
        SELECT u.page_id
        FROM (
            SELECT array_agg(s.page_id) AS page_ids, array_agg(s.url) AS urls,
                array_agg(greatest(s.fetched_at, l.seen_at)) AS times
            FROM seen AS s
            LEFT JOIN LATERAL (
                SELECT n.seen_at FROM pgsimhash.last_seen AS n
                WHERE n.collection_id = own_id AND n.page_id = s.page_id
                    AND n.seen_at < later_start
                ORDER BY n.collection_id, n.page_id
                LIMIT 1
            ) AS l ON true
            WHERE NOT EXISTS (
                SELECT FROM seen AS o WHERE o.is_later AND o.address = s.address
            )
        ) AS a
        CROSS JOIN LATERAL ROWS FROM (
            unnest(a.page_ids, a.urls, a.times), pgsimhash._settings_for(own_id, a.urls)
        ) AS u (page_id, url, last_fetch)
        WHERE u.last_fetch > later_start - u.refetch_after
    ),
    compared AS (
        SELECT
            coalesce(l.url, e.url) AS url, coalesce(l.title, e.title) AS title,
            e.page_id AS earlier_id, l.page_id AS later_id,
            e.simhash AS earlier_simhash, l.simhash AS later_simhash,
            coalesce(t.text, e.text, l.text) AS text,
            CASE
                WHEN l.is_gone THEN 'gone'
                -- Other selectors make another text of the same bytes.
                WHEN e.text = l.text OR e.html_digest = l.html_digest THEN 'unchanged'
                WHEN l.address = e.address THEN 'changed'
                WHEN e.url IS NULL THEN 'new'
                WHEN t.url IS NOT NULL OR later <@ ended AND v.is_visited AND f.page_id IS NULL
                    THEN 'missing'
                ELSE 'not_visited'
            END AS change
        FROM (SELECT * FROM seen AS s WHERE NOT s.is_later AND NOT s.is_gone) AS e
        FULL JOIN (SELECT * FROM seen AS s WHERE s.is_later) AS l ON l.address = e.address
        LEFT JOIN LATERAL (
            SELECT n.target
            FROM pgsimhash.redirects AS n
            WHERE n.collection_id = own_id AND n.url IN (e.address, e.url) AND l.url IS NULL
                -- Not from before it was a page.
                AND n.seen_at >= (
                    SELECT min(u.started_at) FROM pgsimhash.runs AS u WHERE u.run_id = ANY (earlier)
                )
            ORDER BY n.seen_at DESC
            LIMIT 1
        ) AS r ON true
        LEFT JOIN seen AS t ON t.address = r.target AND t.is_later AND NOT t.is_gone
        LEFT JOIN (
            SELECT s.host, 2 * count(*) FILTER (WHERE s.is_later)
                >= count(*) FILTER (WHERE NOT s.is_later AND NOT s.is_gone) AS is_visited
            FROM seen AS s
            GROUP BY s.host
        ) AS v ON v.host = e.host
        LEFT JOIN fresh AS f ON f.page_id = e.page_id
        WHERE e.url IS NOT NULL OR NOT l.is_gone
    ),
    placed AS (
        SELECT c.*, CASE WHEN c.change IN ('new', 'gone', 'missing') THEN row_number() OVER (
            PARTITION BY c.text, c.change = 'new', c.change IN ('gone', 'missing')
            ORDER BY c.url COLLATE "C"
        ) END AS place
        FROM compared AS c
        WHERE c.change <> 'unchanged'
    )
    SELECT r.*
    FROM (
        SELECT
            CASE WHEN n.url <> o.url THEN 'moved' ELSE coalesce(o.change, n.change) END AS change,
            1::bigint AS pages, coalesce(n.url, o.url) AS url,
            CASE WHEN n.url <> o.url THEN o.url END AS moved_from, coalesce(n.title, o.title) AS title,
            CASE WHEN o.change = 'changed' OR n.url <> o.url THEN pgsimhash.hamming_distance(
                o.earlier_simhash, coalesce(n.later_simhash, o.later_simhash)
            ) END AS distance,
            o.earlier_id, coalesce(n.later_id, o.later_id)
        FROM (SELECT * FROM placed AS p WHERE p.change <> 'new') AS o
        FULL JOIN (SELECT * FROM placed AS p WHERE p.change = 'new') AS n
            ON n.text = o.text AND n.place = o.place
        UNION ALL
        SELECT 'unchanged', count(*), NULL, NULL, NULL, NULL, NULL, NULL
        FROM compared AS c
        WHERE c.change = 'unchanged'
    ) AS r
    ORDER BY
        array_position('{changed,moved,new,gone,missing,not_visited,unchanged}', r.change),
        r.distance DESC, r.url COLLATE "C";
END
$$;
