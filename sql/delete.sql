-- What goes: pages by age or by number, and simhashes that no page has.

-- What commits cannot have a search_path of its own, so that no name and operator in it may depend
-- on the caller's.
CREATE PROCEDURE pgsimhash.expire(
    collection text, older_than interval DEFAULT NULL, batch integer DEFAULT 1000
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

COMMENT ON PROCEDURE pgsimhash.expire(text, interval, integer) IS
    'Forgets versions of pages not seen for so long, or as policies say, so many a transaction.';

CREATE FUNCTION pgsimhash.forget_simhashes(
    collection text, simhashes bigint[], bare boolean DEFAULT true
) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    forgotten bigint;
BEGIN
    PERFORM pgsimhash._lock_collections(
        ARRAY(SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection)
    );
    -- CASE: where few are not bare, the planner would rather walk the table to find those.
    EXECUTE format(
        'DELETE FROM %s AS s '
        'USING pgsimhash.collections AS c, unnest($2) AS o (simhash) '
        'WHERE c.name = $1 '
        'AND s.prefix_1 = %s(o.simhash, 1, c.collection_id) AND s.simhash = o.simhash '
        'AND CASE WHEN s.bare THEN $3 ELSE true END '
        'AND NOT EXISTS ('
        'SELECT FROM pgsimhash.pages AS p '
        'WHERE p.collection_id = c.collection_id AND p.simhash = o.simhash)',
        pgsimhash._name_for(collection, 'simhashes'),
        pgsimhash._name_for(collection, 'prefix')
    ) USING collection, simhashes, bare;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION pgsimhash.forget_simhashes(text, bigint[], boolean) IS
    'Removes those of the simhashes that no page of the collection has, or of these only what '
    'came with a page; returns how many.';

-- Internal: for the functions above and for the package, and may change with any release.

-- Pages go under the collection's lock, as they come: what a writer decides meanwhile it decides
-- before or after, not in between. Pages that duplicate a forgotten one stay, as originals. With
-- seen_befores, one for each page, those that were seen since stay too.
CREATE FUNCTION pgsimhash._forget_pages(
    collection text, page_ids bigint[], seen_befores timestamptz[] DEFAULT NULL
) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    wanted constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
    forgotten bigint[];
    simhashes bigint[];
BEGIN
    PERFORM pgsimhash._name_for(collection, 'simhashes');
    PERFORM pgsimhash._lock_collections(ARRAY[wanted]);
    WITH deleted AS (
        DELETE FROM pgsimhash.pages AS p
        USING unnest(page_ids, seen_befores) AS d (page_id, seen_before)
        WHERE p.collection_id = wanted
            AND p.page_id = d.page_id
            AND (
                d.seen_before IS NULL
                OR p.fetched_at < d.seen_before AND NOT EXISTS (
                    SELECT FROM pgsimhash.sightings AS s
                    WHERE s.collection_id = p.collection_id
                        AND s.page_id = p.page_id
                        AND s.seen_at >= d.seen_before
                )
            )
        RETURNING p.page_id, p.simhash
    )
    SELECT array_agg(d.page_id), array_agg(DISTINCT d.simhash)
    INTO forgotten, simhashes
    FROM deleted AS d;
    DELETE FROM pgsimhash.sightings AS s
    WHERE s.collection_id = wanted AND s.page_id = ANY (forgotten);
    UPDATE pgsimhash.pages AS p
    SET duplicate_of = NULL, distance = NULL
    WHERE p.collection_id = wanted AND p.duplicate_of = ANY (forgotten);
    PERFORM pgsimhash.forget_simhashes(collection, simhashes, false);
    RETURN coalesce(cardinality(forgotten), 0);
END
$$;

COMMENT ON FUNCTION pgsimhash._forget_pages(text, bigint[], timestamptz[]) IS
    'Deletes pages of a collection, and simhashes that came with them; returns how many pages.';

-- The pages are looked for without a lock and locked out one batch at a time. They are read in the
-- order of their ids: for a batch, the planner would rather sort what is left of the table. Without
-- an age, each of the next pages has the one that policies give it, if any does.
CREATE FUNCTION pgsimhash._expire_batch(
    collection text, older_than interval, after_page bigint, batch integer,
    OUT last_page bigint, OUT pages bigint
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET enable_sort = off
    SET jit = off
    AS $$
DECLARE
    wanted constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
    next_pages bigint[];
    urls text[];
    old bigint[];
    seen_befores timestamptz[];
BEGIN
    PERFORM pgsimhash._name_for(collection, 'simhashes');
    IF older_than <= interval '0' THEN
        RAISE EXCEPTION 'pages expire by an age of more than nothing, not %', older_than
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give an age such as interval ''90 days''.';
    ELSIF older_than IS NULL AND NOT EXISTS (
        SELECT FROM pgsimhash.policies AS p
        WHERE p.collection_id = wanted AND p.expire_after IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'no policy of collection "%" says when pages expire', collection
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give an age (interval ''90 days'', --older-than 90d), or set a policy: '
                'pgsimhash policy set ''*'' --expire-after 90d.';
    END IF;
    IF older_than IS NULL THEN
        SELECT array_agg(o.page_id), array_agg(o.url), max(o.page_id)
        INTO next_pages, urls, last_page
        FROM (
            SELECT p.page_id, p.url
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = wanted AND p.page_id > after_page
            ORDER BY p.page_id
            LIMIT batch
        ) AS o;
        SELECT array_agg(p.page_id), array_agg(now() - s.expire_after)
        INTO old, seen_befores
        FROM pgsimhash._settings_for(wanted, urls) AS s
        CROSS JOIN LATERAL unnest(s.url_numbers) AS n (url_number)
        JOIN pgsimhash.pages AS p
            ON p.collection_id = wanted AND p.page_id = next_pages[n.url_number]
        WHERE p.fetched_at < now() - s.expire_after
            AND NOT EXISTS (
                SELECT FROM pgsimhash.sightings AS g
                WHERE g.collection_id = p.collection_id
                    AND g.page_id = p.page_id
                    AND g.seen_at >= now() - s.expire_after
            );
    ELSE
        SELECT array_agg(o.page_id), array_agg(now() - older_than), max(o.page_id)
        INTO old, seen_befores, last_page
        FROM (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = wanted
                AND p.page_id > after_page
                AND p.fetched_at < now() - older_than
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.sightings AS s
                    WHERE s.collection_id = p.collection_id
                        AND s.page_id = p.page_id
                        AND s.seen_at >= now() - older_than
                )
            ORDER BY p.page_id
            LIMIT batch
        ) AS o;
    END IF;
    pages := pgsimhash._forget_pages(collection, coalesce(old, '{}'), seen_befores);
END
$$;

COMMENT ON FUNCTION pgsimhash._expire_batch(text, interval, bigint, integer) IS
    'Forgets the next pages not seen for so long; last_page is where to go on, NULL at the end.';
