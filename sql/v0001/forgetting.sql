-- Pages go under the collection's lock, as they come: what a writer decides meanwhile it decides
-- before or after, not in between. Pages that duplicate a forgotten one stay, as originals. With
-- seen_befores, one for each page, those that were seen since stay too.
CREATE FUNCTION pgsimhash.forget_pages(
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
    PERFORM pgsimhash.name_for(collection, 'simhashes');
    PERFORM pgsimhash.lock_collections(ARRAY[wanted]);
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

COMMENT ON FUNCTION pgsimhash.forget_pages(text, bigint[], timestamptz[]) IS
    'Deletes pages of a collection, and simhashes that came with them; returns how many pages.';

-- The pages are looked for without a lock and locked out one batch at a time. They are read in the
-- order of their ids: for a batch, the planner would rather sort what is left of the table. An age
-- that is NULL is the one that policies give each page, if any does.
CREATE FUNCTION pgsimhash.expire_batch(
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
    old bigint[];
    seen_befores timestamptz[];
BEGIN
    PERFORM pgsimhash.name_for(collection, 'simhashes');
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
    SELECT array_agg(o.page_id), array_agg(o.seen_before), max(o.page_id)
    INTO old, seen_befores, last_page
    FROM (
        SELECT p.page_id, now() - a.age AS seen_before
        FROM pgsimhash.pages AS p
        CROSS JOIN LATERAL (
            SELECT coalesce(older_than, pgsimhash.expire_after(wanted, p.url)) AS age
            OFFSET 0
        ) AS a
        WHERE p.collection_id = wanted
            AND p.page_id > after_page
            AND p.fetched_at < now() - a.age
            AND NOT EXISTS (
                SELECT FROM pgsimhash.sightings AS s
                WHERE s.collection_id = p.collection_id
                    AND s.page_id = p.page_id
                    AND s.seen_at >= now() - a.age
            )
        ORDER BY p.page_id
        LIMIT batch
    ) AS o;
    pages := pgsimhash.forget_pages(collection, coalesce(old, '{}'), seen_befores);
END
$$;

COMMENT ON FUNCTION pgsimhash.expire_batch(text, interval, bigint, integer) IS
    'Forgets the next pages not seen for so long; last_page is where to go on, NULL at the end.';

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
        last_page := (pgsimhash.expire_batch(collection, older_than, last_page, batch)).last_page;
        COMMIT;
    END LOOP;
END
$$;

COMMENT ON PROCEDURE pgsimhash.expire(text, interval, integer) IS
    'Forgets versions of pages not seen for so long, or as policies say, so many a transaction.';
