-- Pages go under the collection's lock, as they come: what a writer decides meanwhile it decides
-- before or after, not in between. Pages that duplicate a forgotten one stay, as originals.
CREATE FUNCTION pgsimhash.forget_pages(
    collection text, page_ids bigint[], seen_before timestamptz DEFAULT NULL
) RETURNS bigint
    LANGUAGE plpgsql
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
    PERFORM pg_advisory_xact_lock(1885827944, wanted);
    WITH deleted AS (
        DELETE FROM pgsimhash.pages AS p
        WHERE p.collection_id = wanted
            AND p.page_id = ANY (page_ids)
            AND (
                seen_before IS NULL
                OR p.fetched_at < seen_before AND NOT EXISTS (
                    SELECT FROM pgsimhash.sightings AS s
                    WHERE s.collection_id = p.collection_id
                        AND s.page_id = p.page_id
                        AND s.seen_at >= seen_before
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
    PERFORM pgsimhash.forget_simhashes(collection, simhashes);
    RETURN coalesce(cardinality(forgotten), 0);
END
$$;

COMMENT ON FUNCTION pgsimhash.forget_pages(text, bigint[], timestamptz) IS
    'Deletes pages of a collection, and simhashes only they had; returns how many pages.';

-- The pages are looked for without a lock and locked out one batch at a time. They are read in the
-- order of their ids: for a batch, the planner would rather sort what is left of the table.
CREATE FUNCTION pgsimhash.expire_batch(
    collection text, seen_before timestamptz, after_page bigint, batch integer,
    OUT last_page bigint, OUT pages bigint
)
    LANGUAGE plpgsql
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
BEGIN
    IF seen_before IS NULL OR seen_before > now() THEN
        RAISE EXCEPTION 'pages expire by a time in the past, not %',
            coalesce(seen_before::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give an age of more than nothing, such as interval ''90 days''.';
    END IF;
    SELECT array_agg(o.page_id), max(o.page_id) INTO old, last_page
    FROM (
        SELECT p.page_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = wanted
            AND p.page_id > after_page
            AND p.fetched_at < seen_before
            AND NOT EXISTS (
                SELECT FROM pgsimhash.sightings AS s
                WHERE s.collection_id = p.collection_id
                    AND s.page_id = p.page_id
                    AND s.seen_at >= seen_before
            )
        ORDER BY p.page_id
        LIMIT batch
    ) AS o;
    pages := pgsimhash.forget_pages(collection, coalesce(old, '{}'), seen_before);
END
$$;

COMMENT ON FUNCTION pgsimhash.expire_batch(text, timestamptz, bigint, integer) IS
    'Forgets the next pages not seen since a time; last_page is where to go on, NULL at the end.';

CREATE PROCEDURE pgsimhash.expire(
    collection text, older_than interval, batch integer DEFAULT 1000
)
    LANGUAGE plpgsql
    AS $$
DECLARE
    seen_before constant timestamptz := now() - older_than;
    place record;
    last_page bigint := 0;
BEGIN
    LOOP
        place := pgsimhash.expire_batch(collection, seen_before, last_page, batch);
        last_page := place.last_page;
        COMMIT;
        EXIT WHEN last_page IS NULL;
    END LOOP;
END
$$;

COMMENT ON PROCEDURE pgsimhash.expire(text, interval, integer) IS
    'Forgets all versions of pages not seen for so long, in transactions of so many pages.';
