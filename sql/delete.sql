-- Deletion of pages.

-- Deletes versions not seen for an age, or as policies define, in transactions of batch pages.
--
-- A procedure that commits cannot set search_path, so all names and operators in it are qualified.
CREATE PROCEDURE pgsimhash.expire(
    older_than interval DEFAULT NULL, batch integer DEFAULT 1000, collection text DEFAULT 'default'
)
    LANGUAGE plpgsql
    AS $$
DECLARE
    last_page bigint := 0;
BEGIN
    WHILE last_page IS NOT NULL LOOP
        last_page := (pgsimhash._expire_batch(collection, older_than, last_page, batch)).last_page;
        COMMIT;
    END LOOP;
END
$$;

-- Deletes what a run added, and the run, in one transaction; returns the number of versions. URLs
-- revert to their previous versions.
CREATE FUNCTION pgsimhash.undo_run(run_id bigint, collection text DEFAULT 'default')
RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last_page bigint := 0;
    deleted bigint := 0;
BEGIN
    PERFORM pgsimhash._lock_collection(collection, 3);
    PERFORM pgsimhash._check_runs(collection, ARRAY[run_id]);
    WHILE last_page IS NOT NULL LOOP
        SELECT d.last_page, deleted + coalesce(d.pages, 0) INTO last_page, deleted
        FROM pgsimhash._delete_batch(collection, NULL, NULL, run_id, last_page, 1000) AS d;
    END LOOP;
    RETURN deleted;
END
$$;

-- Pages are deleted under the collection's lock, so a writer decides before or after. Pages seen since
-- their time in seen_befores stay. URLs are gone, or reverted to an earlier version.
CREATE FUNCTION pgsimhash._delete_pages(
    collection text, page_ids bigint[], seen_befores timestamptz[] DEFAULT NULL,
    undone bigint DEFAULT NULL, emptied text DEFAULT NULL,
    OUT pages bigint, OUT gone text[], OUT reverted text[], OUT promoted bigint[]
)
    LANGUAGE plpgsql ${in_order} SET datestyle = 'ISO' AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 3);
    deleted bigint[] := ARRAY(
        SELECT p.page_id
        FROM unnest(page_ids, seen_befores) AS d (page_id, seen_before)
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = d.page_id
        WHERE d.seen_before IS NULL OR ${unseen_since d.seen_before}
    );
    expected constant bigint := cardinality(deleted);
    urls text[];
    simhashes bigint[];
    run_ids bigint[];
    copy record;
BEGIN
    SELECT * INTO copy FROM pgsimhash._copies_of(own_id, deleted);
    WITH removed AS (
        DELETE FROM pgsimhash.pages AS p
        USING unnest(deleted) AS d (page_id)
        WHERE p.collection_id = own_id AND p.page_id = d.page_id
        RETURNING p.page_id, p.url, p.simhash, p.run_id, p.indexed
    )
    SELECT
        array_agg(r.page_id), array_agg(r.url),
        array_agg(DISTINCT r.simhash) FILTER (WHERE r.indexed),
        array_agg(DISTINCT r.run_id)
    INTO deleted, urls, simhashes, run_ids
    FROM removed AS r;
    pages := coalesce(cardinality(deleted), 0);
    ASSERT pages = expected, 'a trigger or row security skipped deleted pages';
    DELETE FROM pgsimhash.last_seen AS s
    WHERE s.collection_id = own_id AND s.page_id = ANY (deleted);
    DELETE FROM pgsimhash.clusters AS c
    WHERE c.collection_id = own_id AND c.page_id = ANY (deleted);
    -- Runs without pages are deleted, unless they saw other ones. The bounds of the others move to
    -- remaining pages, where the next search begins.
    UPDATE pgsimhash.runs AS r
    SET first_page = (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.run_id = r.run_id
                AND p.page_id BETWEEN r.first_page AND r.last_page
            ORDER BY p.collection_id, p.page_id
            LIMIT 1
        ),
        last_page = (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.run_id = r.run_id
                AND p.page_id BETWEEN r.first_page AND r.last_page
            ORDER BY p.collection_id DESC, p.page_id DESC
            LIMIT 1
        )
    WHERE r.collection_id = own_id AND r.run_id = ANY (run_ids)
        AND (r.first_page = ANY (deleted) OR r.last_page = ANY (deleted));
    PERFORM pgsimhash._delete_empty_runs(own_id, ARRAY(
        SELECT r.run_id
        FROM pgsimhash.runs AS r
        WHERE r.collection_id = own_id AND r.run_id = ANY (run_ids) AND r.unchanged + r.gone = 0
    ));
    PERFORM pgsimhash._index_simhashes(own_id, simhashes);
    promoted := pgsimhash._promote_copies(
        own_id, copy.copy_ids, copy.heads, copy.originals, undone, emptied
    );
    -- Marks stay, and may join other versions now.
    IF EXISTS (SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id AND m.same) THEN
        PERFORM pgsimhash._decide_again(collection, own_id, d.url, d.other_url, true)
        FROM (
            SELECT DISTINCT p.url, m.url AS other_url
            FROM unnest(copy.copy_ids) AS c (page_id)
            CROSS JOIN ${page c.page_id} AS p
            CROSS JOIN LATERAL pgsimhash._marks_of(own_id, p.url) AS m
            CROSS JOIN ${newest m.url} AS o
            WHERE m.same
        ) AS d;
    END IF;
    SELECT
        coalesce(array_agg(t.url ORDER BY t.newest) FILTER (WHERE r.page_id IS NULL), '{}'),
        coalesce(array_agg(t.url ORDER BY t.newest) FILTER (WHERE r.page_id < t.newest), '{}')
    INTO gone, reverted
    FROM (
        SELECT u.url, max(u.page_id) AS newest
        FROM unnest(urls, deleted) AS u (url, page_id)
        GROUP BY u.url
    ) AS t
    LEFT JOIN ${newest t.url} AS r ON true;
END
$$;

-- Deletes those of the runs that have no page, and what they saw.
CREATE FUNCTION pgsimhash._delete_empty_runs(own_id integer, run_ids bigint[]) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH removed AS (
        DELETE FROM pgsimhash.runs AS r
        WHERE r.collection_id = own_id AND r.run_id = ANY (run_ids) AND r.first_page IS NULL
        RETURNING r.run_id
    )
    DELETE FROM pgsimhash.sightings AS s
    WHERE s.collection_id = own_id AND s.run_id = ANY (ARRAY(SELECT d.run_id FROM removed AS d));
$$;

-- Indexes the first of the pages that have one of the simhashes.
CREATE FUNCTION pgsimhash._index_simhashes(own_id integer, simhashes bigint[]) RETURNS void
    LANGUAGE sql ${in_order} AS $$
    UPDATE pgsimhash.pages AS p
    SET indexed = true
    FROM unnest(simhashes) AS s (simhash)
    CROSS JOIN LATERAL (
        SELECT f.page_id
        FROM pgsimhash.pages AS f
        WHERE f.collection_id = own_id AND f.simhash BETWEEN s.simhash AND s.simhash
        ORDER BY f.simhash, f.page_id
        LIMIT 1
    ) AS first
    WHERE p.collection_id = own_id AND p.page_id = first.page_id AND NOT p.indexed;
$$;

-- The remaining copies of deleted pages, and copies of these. The head of a copy is the last deleted
-- page on the way to its original, which is the head's original.
CREATE FUNCTION pgsimhash._copies_of(
    own_id integer, page_ids bigint[], OUT copy_ids bigint[], OUT heads bigint[],
    OUT originals bigint[]
)
    LANGUAGE sql STABLE ${by_index} AS $$
    WITH RECURSIVE going AS MATERIALIZED (
        SELECT DISTINCT p.page_id, p.duplicate_of
        FROM unnest(page_ids) AS d (page_id)
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = d.page_id
    ),
    chain (page_id, head, original, goes) AS (
        SELECT g.page_id, g.page_id, g.duplicate_of, true
        FROM going AS g
        WHERE NOT EXISTS (SELECT FROM going AS o WHERE o.page_id = g.duplicate_of)
        UNION ALL
        SELECT p.page_id, c.head, c.original, g.page_id IS NOT NULL
        FROM chain AS c
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.duplicate_of = c.page_id
        LEFT JOIN going AS g ON g.page_id = p.page_id
        WHERE c.goes
    )
    SELECT
        array_agg(c.page_id ORDER BY c.page_id), array_agg(c.head ORDER BY c.page_id),
        array_agg(c.original ORDER BY c.page_id)
    FROM chain AS c
    WHERE NOT c.goes;
$$;

-- The copies of a head are decided again, by the rule and the policies of the collection. First
-- they are compared with its original, if that remains, and then with the earliest remaining copy,
-- which becomes an original. A page of the undone run or the emptied host keeps them until it goes
-- too. After a hundred rounds all remaining copies become originals, which bounds the time under the
-- lock.
CREATE FUNCTION pgsimhash._promote_copies(
    own_id integer, copy_ids bigint[], heads bigint[], originals bigint[], undone bigint,
    emptied text
) RETURNS bigint[]
    LANGUAGE plpgsql ${by_index} AS $$
DECLARE
    default_distance constant integer := (
        SELECT c.default_distance FROM pgsimhash.collections AS c WHERE c.collection_id = own_id
    );
    marked constant boolean := EXISTS (
        SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id
    );
    leaders bigint[] := originals;
    urls text[];
    promoted bigint[] := '{}';
    rounds integer := 0;
BEGIN
    WHILE cardinality(copy_ids) > 0 LOOP
        SELECT array_agg(p.url ORDER BY c.number) INTO urls
        FROM unnest(copy_ids) WITH ORDINALITY AS c (page_id, number)
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = c.page_id;
        WITH moved AS (
            UPDATE pgsimhash.pages AS p
            SET duplicate_of = m.leader, distance = m.distance
            FROM (
                SELECT
                    c.page_id, l.page_id AS leader,
                    pgsimhash.hamming_distance(c.simhash, l.simhash) AS distance
                FROM unnest(copy_ids, leaders) WITH ORDINALITY AS u (page_id, leader, number)
                JOIN pgsimhash.pages AS c ON c.collection_id = own_id AND c.page_id = u.page_id
                JOIN pgsimhash.pages AS l ON l.collection_id = own_id AND l.page_id = u.leader
                LEFT JOIN pgsimhash._settings_for(own_id, urls) WITH ORDINALITY AS s
                    ON s.ordinality = u.number
                LEFT JOIN LATERAL
                    pgsimhash._versions_before(own_id, ARRAY[c.url], c.page_id) AS v ON true
                CROSS JOIN LATERAL (
                    SELECT
                        CASE WHEN s.scope = 'host' THEN c.host END AS only_host,
                        CASE WHEN s.scope = 'global' THEN pgsimhash._siblings(own_id)
                            ELSE ARRAY[own_id] END AS compared,
                        coalesce(v.text_digest, v.simhash) AS before,
                        array_agg(m.url) FILTER (WHERE NOT m.same) AS apart,
                        coalesce(bool_or(m.same AND m.url = l.url), false) AS marked_same
                    FROM pgsimhash._marks_of(CASE WHEN marked THEN own_id END, c.url) AS m
                ) AS k
                WHERE u.page_id <> u.leader AND (
                    k.marked_same OR rounds = 0 AND l.run_id = undone OR l.host = emptied
                    OR pgsimhash._counts(
                        pgsimhash.hamming_distance(c.simhash, l.simhash), l.page_id, l.url, l.host,
                        l.fetched_at, l.simhash, l.signature_high, l.signature_low,
                        l.distance IS NOT NULL,
                        (
                            SELECT d.url
                            FROM pgsimhash.pages AS d
                            WHERE d.collection_id = own_id AND d.page_id = l.duplicate_of
                        ),
                        c.url, k.only_host, c.fetched_at - s.max_age,
                        CASE WHEN s.window_size IS NOT NULL THEN pgsimhash._window(
                            k.compared, k.only_host, s.window_size, c.page_id
                        ) END,
                        k.apart, v.simhash, v.first_page, coalesce(s.distance, default_distance),
                        CASE WHEN coalesce(s.verify, true) THEN c.signature_high END,
                        CASE WHEN coalesce(s.verify, true) THEN c.signature_low END,
                        l.covered, coalesce(l.text_digest, l.simhash),
                        CASE WHEN pgsimhash._safe_texts(k.compared, ARRAY[k.before], c.page_id) <> '{}'
                            THEN nullif(coalesce(c.text_digest, c.simhash), k.before) END
                    )
                )
            ) AS m
            WHERE p.collection_id = own_id AND p.page_id = m.page_id
            RETURNING p.page_id
        )
        SELECT array_agg(r.page_id), array_agg(r.head), array_agg(r.leader)
        INTO copy_ids, heads, leaders
        FROM (
            SELECT
                c.page_id, c.head,
                CASE WHEN rounds < 100 THEN min(c.page_id) OVER (PARTITION BY c.head)
                    ELSE c.page_id END AS leader
            FROM unnest(copy_ids, heads, leaders) AS c (page_id, head, leader)
            WHERE c.page_id IS DISTINCT FROM c.leader
                AND NOT EXISTS (SELECT FROM moved AS m WHERE m.page_id = c.page_id)
            ORDER BY c.page_id
        ) AS r;
        WITH leader AS (
            UPDATE pgsimhash.pages AS p
            SET duplicate_of = NULL, distance = NULL
            FROM (SELECT DISTINCT u.leader FROM unnest(leaders) AS u (leader)) AS n
            WHERE p.collection_id = own_id AND p.page_id = n.leader
            RETURNING p.page_id
        )
        SELECT promoted || coalesce(array_agg(l.page_id ORDER BY l.page_id), '{}') INTO promoted
        FROM leader AS l;
        rounds := rounds + 1;
    END LOOP;
    RETURN promoted;
END
$$;

-- The pages are searched without a lock and locked one batch at a time. They are read in the order
-- of their ids; otherwise the planner would sort the rest of the table for each batch. Without an
-- age, policies define the age of each page, if any does. last_page is NULL at the end.
CREATE FUNCTION pgsimhash._expire_batch(
    collection text, older_than interval, after_page bigint, batch integer,
    OUT last_page bigint, OUT pages bigint, OUT gone text[], OUT reverted text[],
    OUT promoted bigint[]
)
    LANGUAGE plpgsql ${in_order} SET datestyle = 'ISO' AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    next_pages bigint[];
    urls text[];
    seen_befores timestamptz[];
BEGIN
    PERFORM pgsimhash._check_age(older_than);
    IF batch < 1 THEN
        RAISE EXCEPTION 'a batch must have at least one page, not %', batch
            USING ERRCODE = 'PS010', HINT = 'Give a number such as 1000.';
    ELSIF older_than IS NULL AND NOT EXISTS (
        SELECT FROM pgsimhash.policies AS p
        WHERE p.collection_id = own_id AND p.expire_after IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'no policy of collection "%" defines when pages expire', collection
            USING ERRCODE = 'PS010',
            HINT = 'Give an age (older_than), or set expire_after in a policy for "*".';
    END IF;
    SELECT
        array_agg(o.page_id), array_agg(o.url), array_agg(now() - older_than),
        CASE WHEN count(*) = batch THEN max(o.page_id) END
    INTO next_pages, urls, seen_befores, last_page
    FROM (
        SELECT p.page_id, p.url
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id
            AND p.page_id > after_page
            AND (older_than IS NULL OR ${unseen_since now() - older_than})
        ORDER BY p.page_id
        LIMIT batch
    ) AS o;
    IF older_than IS NULL THEN
        SELECT array_agg(next_pages[s.ordinality]), array_agg(now() - s.expire_after)
        INTO next_pages, seen_befores
        FROM pgsimhash._settings_for(own_id, urls) WITH ORDINALITY AS s
        WHERE s.expire_after IS NOT NULL;
    END IF;
    SELECT * INTO pages, gone, reverted, promoted
    FROM pgsimhash._delete_pages(collection, coalesce(next_pages, '{}'), seen_befores);
    IF last_page IS NULL THEN
        PERFORM pgsimhash._delete_empty_runs(own_id, ARRAY(
            SELECT r.run_id
            FROM pgsimhash.runs AS r
            WHERE r.collection_id = own_id AND r.first_page IS NULL
                AND r.finished_at < now() - coalesce(older_than, (
                    SELECT max(p.expire_after)
                    FROM pgsimhash.policies AS p
                    WHERE p.collection_id = own_id
                ))
        ));
    END IF;
END
$$;

-- By their names, because an upgrade may add a column of the table while this waits for it.
CREATE FUNCTION pgsimhash._runs(own_id integer)
    RETURNS TABLE (
        run_id bigint, label text, started_at timestamptz, finished_at timestamptz,
        ended_at timestamptz, pages bigint, new bigint, duplicates bigint, updated bigint,
        unchanged bigint, gone bigint, content_missing bigint, cut_short bigint
    )
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT
        r.run_id, r.label, r.started_at, r.finished_at, r.ended_at, r.pages, r.new, r.duplicates,
        r.updated, r.unchanged, r.gone, r.content_missing, r.cut_short
    FROM pgsimhash.runs AS r
    WHERE r.collection_id = own_id
    ORDER BY r.run_id DESC;
$$;

-- Deletes the next pages of a URL, of a host or of a run, those of a run from the last id, so that
-- nothing is read twice and no copy is promoted that goes next; of a host in the order of the index.
-- last_page is NULL at the end. What a run saw is forgotten first, and so are archives, because it is
-- unknown which of their records the run stored; files with one page have its page_id. The run's writer
-- may continue meanwhile. The pages of a URL are searched under the lock, to include those added during
-- the wait.
CREATE FUNCTION pgsimhash._delete_batch(
    collection text, url text, host text, run_id bigint, after_page bigint, batch integer,
    OUT last_page bigint, OUT pages bigint, OUT gone text[], OUT reverted text[],
    OUT promoted bigint[]
)
    LANGUAGE plpgsql ${by_index} AS $$
DECLARE
    own_id constant integer := CASE
        WHEN host IS NOT NULL THEN pgsimhash._id_of(collection)
        ELSE pgsimhash._lock_collection(collection, 3)
    END;
    next_pages bigint[];
BEGIN
    IF url IS NOT NULL THEN
        next_pages := ARRAY(
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.url COLLATE "default" = _delete_batch.url
            ORDER BY p.page_id
            LIMIT batch
        );
    ELSIF host IS NOT NULL THEN
        IF pgsimhash.host_of('https://' || host) IS DISTINCT FROM host THEN
            RAISE EXCEPTION '"%" is not a host', host
                USING ERRCODE = 'PS010', HINT = 'Give a name such as example.com.';
        END IF;
        next_pages := ARRAY(
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.host COLLATE "default" = _delete_batch.host
            ORDER BY p.distance IS NULL, p.page_id
            LIMIT batch
        );
    ELSE
        DELETE FROM pgsimhash.sources AS s WHERE s.collection_id = own_id AND s.page_id IS NULL;
        IF pgsimhash._forget_batches(own_id, run_id) THEN
            last_page := after_page;
            RETURN;
        END IF;
        PERFORM pgsimhash._delete_empty_runs(own_id, ARRAY[run_id]);
        next_pages := ARRAY(
            SELECT p.page_id
            FROM pgsimhash.runs AS r
            CROSS JOIN LATERAL (
                SELECT o.page_id
                FROM pgsimhash.pages AS o
                WHERE o.collection_id = r.collection_id
                    AND o.page_id BETWEEN r.first_page
                        AND coalesce(nullif(after_page, 0) - 1, r.last_page)
                    AND o.run_id = r.run_id
                ORDER BY o.collection_id DESC, o.page_id DESC
                LIMIT batch
            ) AS p
            WHERE r.collection_id = own_id AND r.run_id = _delete_batch.run_id
        );
    END IF;
    IF cardinality(next_pages) > 0 THEN
        SELECT next_pages[cardinality(next_pages)], d.pages, d.gone, d.reverted, d.promoted
        INTO last_page, pages, gone, reverted, promoted
        FROM pgsimhash._delete_pages(collection, next_pages, NULL, run_id, host) AS d;
    END IF;
END
$$;

-- Deletes all versions of a page; returns the number of versions.
CREATE FUNCTION pgsimhash.delete_page(url text, collection text DEFAULT 'default')
RETURNS bigint
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((pgsimhash._delete_batch(collection, url, NULL, NULL, 0, NULL)).pages, 0);
$$;

-- Deletes all pages of a host, without its subdomains; returns the number of versions.
CREATE FUNCTION pgsimhash.delete_host(host text, collection text DEFAULT 'default')
RETURNS bigint
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT pgsimhash._lock_collection(collection, 3);
    SELECT coalesce((pgsimhash._delete_batch(
        collection, NULL, lower(host COLLATE "C"), NULL, 0, NULL
    )).pages, 0);
$$;

-- Forgets the last batches of a run; returns whether there were any. The pages that it saw last get
-- the times before it, or those of a later batch. Later batches of other runs, usually none, that
-- remember the times of a forgotten one get earlier times too.
CREATE FUNCTION pgsimhash._forget_batches(own_id integer, undone bigint) RETURNS boolean
    LANGUAGE plpgsql ${by_index} SET datestyle = 'ISO' AS $$
DECLARE
    -- A cluster could not plan composite variables.
    forgotten_number bigint;
    ids bigint[];
    times timestamptz[];
    befores timestamptz[];
    gone_befores timestamptz[];
    saw_at timestamptz;
BEGIN
    FOR forgotten IN 0..15 LOOP
        DELETE FROM pgsimhash.sightings AS s
        WHERE s.collection_id = own_id AND s.run_id = undone AND s.number = (
            SELECT max(n.number)
            FROM pgsimhash.sightings AS n
            WHERE n.collection_id = own_id AND n.run_id = undone
        )
        RETURNING s.number, s.page_ids, s.times, s.befores, s.gone_befores, s.seen_at
        INTO forgotten_number, ids, times, befores, gone_befores, saw_at;
        IF NOT FOUND THEN
            RETURN forgotten > 0;
        END IF;
        WITH page AS MATERIALIZED (
            SELECT
                p.page_id, p.fetched_at, max(u.before) AS before, max(u.gone_before) AS gone_before,
                greatest(p.fetched_at, max(u.moment) FILTER (WHERE u.page_id > 0)) AS seen_at,
                max(u.moment) FILTER (WHERE u.page_id < 0) AS gone_at
            FROM pgsimhash._sightings(ids, times, befores, gone_befores, saw_at) AS u
            CROSS JOIN ${page abs(u.page_id)} AS p
            GROUP BY p.page_id, p.fetched_at
        ),
        later AS MATERIALIZED (
            SELECT
                l.number, u.page_id AS seen_id, p.page_id,
                greatest(p.fetched_at, CASE WHEN u.page_id > 0 THEN u.moment END) AS seen_at,
                CASE WHEN u.page_id < 0 THEN u.moment END AS gone_at,
                CASE WHEN u.before > p.seen_at THEN u.before ELSE greatest(
                    p.before,
                    max(greatest(p.fetched_at, CASE WHEN u.page_id > 0 THEN u.moment END)) OVER (
                        PARTITION BY p.page_id ORDER BY l.number
                        RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    )
                ) END AS before,
                greatest(nullif(u.gone_before, p.gone_at), p.gone_before) AS gone_before
            FROM pgsimhash.sightings AS l
            CROSS JOIN LATERAL pgsimhash._sightings(
                l.page_ids, l.times, l.befores, l.gone_befores, l.seen_at
            ) AS u
            JOIN page AS p ON p.page_id = abs(u.page_id)
            WHERE l.collection_id = own_id AND l.number > forgotten_number
        ),
        corrected AS (
            UPDATE pgsimhash.sightings AS s
            SET (befores, gone_befores) = (
                SELECT
                    array_agg(CASE WHEN l.number IS NULL THEN u.before ELSE l.before END
                        ORDER BY u.place),
                    array_agg(CASE WHEN l.number IS NULL THEN u.gone_before ELSE l.gone_before END
                        ORDER BY u.place)
                FROM pgsimhash._sightings(
                    s.page_ids, s.times, s.befores, s.gone_befores, s.seen_at
                ) AS u
                LEFT JOIN later AS l ON l.number = s.number AND l.seen_id = u.page_id
            )
            WHERE s.collection_id = own_id
                AND s.number = ANY (ARRAY(SELECT l.number FROM later AS l))
        ),
        restored AS MATERIALIZED (
            SELECT r.page_id, r.seen_at, coalesce(
                r.other_gone_at, CASE WHEN r.gone_at > r.seen_at THEN r.gone_at END
            ) AS gone_at
            FROM (
                SELECT
                    p.page_id, greatest(p.gone_before, max(l.gone_at)) AS gone_at,
                    nullif(s.gone_at, p.gone_at) AS other_gone_at,
                    CASE WHEN s.seen_at > p.seen_at THEN s.seen_at
                        ELSE greatest(p.before, s.outside_at, max(l.seen_at)) END AS seen_at
                FROM page AS p
                JOIN pgsimhash.last_seen AS s
                    ON s.page_id = p.page_id AND s.collection_id = own_id
                    AND s.page_id = ANY (ARRAY(SELECT n.page_id FROM page AS n))
                LEFT JOIN later AS l ON l.page_id = p.page_id
                GROUP BY
                    p.page_id, p.gone_before, s.gone_at, p.gone_at, s.seen_at, p.seen_at, p.before,
                    s.outside_at
            ) AS r
        ),
        removed AS (
            DELETE FROM pgsimhash.last_seen AS s
            USING restored AS r
            WHERE s.collection_id = own_id AND s.page_id = r.page_id AND r.seen_at IS NULL
                AND s.page_id = ANY (ARRAY(SELECT n.page_id FROM page AS n))
        )
        UPDATE pgsimhash.last_seen AS s
        SET seen_at = r.seen_at, gone_at = r.gone_at
        FROM restored AS r
        WHERE s.collection_id = own_id AND s.page_id = r.page_id AND r.seen_at IS NOT NULL
            AND s.page_id = ANY (ARRAY(SELECT n.page_id FROM page AS n))
            AND (s.seen_at, s.gone_at) IS DISTINCT FROM (r.seen_at, r.gone_at);
    END LOOP;
    RETURN true;
END
$$;

-- The versions that a batch saw, in order.
CREATE FUNCTION pgsimhash._sightings(
    page_ids bigint[], times timestamptz[], befores timestamptz[], gone_befores timestamptz[],
    seen_at timestamptz
) RETURNS TABLE (
    page_id bigint, moment timestamptz, before timestamptz, gone_before timestamptz, place bigint
)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT u.page_id, coalesce(u.moment, _sightings.seen_at), u.before, u.gone_before, u.place
    FROM unnest(page_ids, times, befores, gone_befores) WITH ORDINALITY
        AS u (page_id, moment, before, gone_before, place);
$$;
