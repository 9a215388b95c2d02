-- A batch: its settings, what is near, its lock, its rows, and what its run saw.

-- Decides about a batch in order and stores it. pages has objects with fields of _decision and columns
-- of pages; options has settings of all pages. Decisions have the numbers of their pages.
--
-- Near simhashes are looked up before the lock. A dry run locks and stores nothing. Pages with ids are
-- decided as if they had arrived with them: nothing is locked, and each gets its own row.
CREATE FUNCTION pgsimhash._add_batch(
    collection text, own_id integer, pages json, options jsonb, dry_run boolean,
    run_id bigint DEFAULT NULL, label text DEFAULT NULL
) RETURNS TABLE (
    number bigint, decided pgsimhash.verdict, detail text, sighting bigint
)
    LANGUAGE plpgsql ${by_index} SET datestyle = 'ISO' AS $$
DECLARE
    batch pgsimhash._decision[] := pgsimhash._with_settings(own_id, pages, options);
    has_ids constant boolean := batch[1].page_id IS NOT NULL;
    compared integer[] := ARRAY[own_id];
    newest_pages bigint[];
    newest bigint;
    pairs pgsimhash._near_pair[];
    arrived pgsimhash._near_pair[];
    known_simhashes bigint[];
    sighting_number bigint;
BEGIN
    RETURN QUERY
    SELECT
        d.number,
        json_populate_record(NULL::pgsimhash.verdict, json_build_object(
            'url', d.url,
            'kind', CASE WHEN d.failure IS NULL THEN 'too_short' ELSE 'failed' END,
            'reason', coalesce(d.failure, 'policy'),
            'keep', false
        )),
        CASE
            WHEN d.failure IS NULL
            THEN format('it has %s words, fewer than %s', d.tokens, d.min_tokens)
        END,
        NULL::bigint
    FROM unnest(batch) AS d
    WHERE d.failure IS NOT NULL OR d.tokens < d.min_tokens;
    IF FOUND THEN
        batch := ARRAY(
            SELECT d
            FROM unnest(batch) AS d
            WHERE d.failure IS NULL AND (d.tokens < d.min_tokens) IS NOT TRUE
        );
    END IF;
    IF cardinality(batch) = 0 THEN
        RETURN;
    ELSIF EXISTS (SELECT FROM unnest(batch) AS d WHERE d.scope = 'global') THEN
        -- Pages of a collection that this transaction rebuilds are in the new one too.
        compared := array_remove(
            pgsimhash._siblings(own_id), nullif(current_setting('simhashes.rebuilt', true), '')::integer
        );
    END IF;
    SELECT n.newest_pages, n.pairs INTO newest_pages, pairs
    FROM pgsimhash._near_pairs(own_id, compared, batch) AS n;
    IF NOT (dry_run OR has_ids) THEN
        SELECT a.newest, a.near INTO newest, arrived
        FROM pgsimhash._lock_compared(collection, own_id, compared, newest_pages, batch) AS a;
        pairs := pairs || arrived;
    END IF;
    IF NOT has_ids THEN
        batch := pgsimhash._with_ids(batch, newest, dry_run);
    END IF;
    batch := pgsimhash._with_versions(own_id, batch);
    batch := pgsimhash._with_marked_originals(own_id, batch);
    batch := pgsimhash._with_originals(own_id, compared, batch, pairs);
    IF NOT dry_run THEN
        -- Their pages may have been deleted between the lookup and the lock.
        known_simhashes := ARRAY(
            SELECT n.near
            FROM unnest(pairs) AS n
            CROSS JOIN LATERAL (
                SELECT
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id AND p.simhash BETWEEN n.near AND n.near
                ORDER BY p.simhash
                LIMIT 1
            ) AS p
            WHERE n.near = n.query
        );
        sighting_number := pgsimhash._store_batch(
            own_id, batch, pages, known_simhashes, has_ids, run_id, label
        );
    END IF;
    RETURN QUERY
    SELECT d.number, ROW(
        d.url,
        CASE
            WHEN d.present_id IS NULL THEN 'unknown'
            WHEN d.is_gone THEN 'gone'
            WHEN NOT d.is_stored THEN 'unchanged'
            WHEN d.original_distance <= 3 THEN 'duplicate'
            WHEN d.original_distance > 3 THEN 'near'
            WHEN d.version_id IS NOT NULL THEN 'updated'
            ELSE 'new'
        END,
        CASE
            WHEN d.is_gone THEN 'gone'
            WHEN NOT d.is_gone THEN 'not_modified'
            WHEN NOT d.is_stored THEN 'unchanged'
            WHEN d.reason IS NOT NULL THEN d.reason
            WHEN d.version_id IS NULL AND d.ignore_parameters IS NOT NULL AND EXISTS (
                SELECT FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id
                    AND p.address = pgsimhash.page_address(d.url, d.ignore_parameters)
                    AND p.page_id < d.page_id
            ) THEN 'address_known'
            WHEN d.version_id IS NULL THEN 'first_seen'
            WHEN d.selectors_changed THEN 'selectors_changed'
            WHEN d.version_digest = d.text_digest THEN 'same_text'
            ELSE 'changed'
        END,
        CASE
            WHEN d.is_gone OR d.present_id IS NULL THEN NULL
            WHEN NOT d.is_stored THEN 0
            WHEN d.original_distance IS NULL AND d.version_id IS NOT NULL
                THEN pgsimhash.hamming_distance(d.simhash, d.version_simhash)
            ELSE d.original_distance
        END,
        d.original_url,
        d.keep,
        CASE WHEN NOT (dry_run AND d.is_stored) THEN d.present_id END,
        -- The pages of a dry run have no ids.
        CASE
            WHEN NOT d.is_stored THEN (SELECT p.duplicate_of FROM ${page d.present_id} AS p)
            WHEN NOT dry_run OR has_ids OR d.original_id < batch[1].page_id THEN d.original_id
        END
    )::pgsimhash.verdict,
        CASE
            WHEN d.is_stored
                AND d.fetched_at < (SELECT p.fetched_at FROM ${page d.version_id} AS p)
            THEN 'it is older than the version before it'
        END,
        sighting_number
    FROM unnest(batch) AS d;
END
$$;

-- The pages of a batch with their settings: their own, else those of options, else those of policies,
-- else those of the collection. Without policies, it is one conversion for all pages.
CREATE FUNCTION pgsimhash._with_settings(own_id integer, pages json, options jsonb)
RETURNS pgsimhash._decision[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    defaults jsonb;
    has_policies boolean;
BEGIN
    SELECT jsonb_build_object(
        'distance', c.default_distance, 'verify', true, 'scope', 'collection', 'max_copies', 1
    ), EXISTS (SELECT FROM pgsimhash.policies AS p WHERE p.collection_id = own_id)
    INTO defaults, has_policies
    FROM pgsimhash.collections AS c
    WHERE c.collection_id = own_id;
    -- NULL if the collection was deleted, which the lock reports.
    IF has_policies IS NOT TRUE THEN
        RETURN ARRAY(
            SELECT d
            FROM json_populate_recordset(
                jsonb_populate_record(NULL::pgsimhash._decision, defaults || options), pages
            ) AS d
        );
    END IF;
    RETURN ARRAY(
        SELECT json_populate_record(jsonb_populate_record(
            NULL::pgsimhash._decision, defaults || jsonb_strip_nulls(to_jsonb(s)) || options
        ), p.page)
        FROM json_array_elements(pages) WITH ORDINALITY AS p (page, ordinality)
        JOIN pgsimhash._settings_for(
            own_id, ARRAY(SELECT u.page ->> 'url' FROM json_array_elements(pages) AS u (page))
        ) WITH ORDINALITY AS s USING (ordinality)
        ORDER BY ordinality
    );
END
$$;

-- The newest page of each collection or 0, and the stored simhashes near those of a batch, each within
-- its own distance. A function and a loop, so that few variables go to the node of the pages.
CREATE FUNCTION pgsimhash._near_pairs(
    own_id integer, compared integer[], batch pgsimhash._decision[],
    OUT newest_pages bigint[], OUT pairs pgsimhash._near_pair[]
)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lookup record;
BEGIN
    newest_pages := ARRAY(
        SELECT (
            SELECT coalesce(max(p.page_id), 0)
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = c.collection_id
        )
        FROM unnest(compared) WITH ORDINALITY AS c (collection_id, number)
        ORDER BY c.number
    );
    pairs := '{}';
    FOR lookup IN
        SELECT
            d.distance, d.scope = 'global' AS everywhere, array_agg(DISTINCT d.simhash) AS queries
        FROM unnest(batch) AS d
        WHERE d.is_gone IS NULL
        GROUP BY 1, 2
    LOOP
        pairs := pairs || ARRAY(
            SELECT (lookup.queries[m.query_number], m.simhash)::pgsimhash._near_pair
            FROM pgsimhash.collections AS c
            CROSS JOIN LATERAL
                pgsimhash._matches(lookup.queries, lookup.distance, c.name) AS m
            WHERE c.collection_id = own_id
                OR lookup.everywhere AND c.collection_id = ANY (compared)
        );
    END LOOP;
END
$$;

-- Locks the compared collections: from here on nobody else adds pages. Ids are assigned under the lock,
-- so pages with ids above the newest ones arrived after the lookup. Returns the newest id, and those of
-- their simhashes that are near the batch. The order requires the primary key: a generic plan expects a
-- third of the collection, and would read the narrowest index from end to end.
CREATE FUNCTION pgsimhash._lock_compared(
    collection text, own_id integer, compared integer[], newest_pages bigint[],
    batch pgsimhash._decision[], OUT newest bigint, OUT near pgsimhash._near_pair[]
)
    LANGUAGE plpgsql ${in_order} AS $$
DECLARE
    arrived bigint[];
BEGIN
    PERFORM pgsimhash._lock_collections(compared, 2);
    IF pgsimhash._id_of(collection) <> own_id THEN
        RAISE EXCEPTION 'collection "%" was replaced during the call', collection
            USING ERRCODE = 'PS003', HINT = 'Try again.';
    END IF;
    SELECT array_agg(DISTINCT a.simhash), max(coalesce(a.page_id, c.newest_page))
    INTO arrived, newest
    FROM unnest(compared, newest_pages) AS c (collection_id, newest_page)
    LEFT JOIN LATERAL (
        SELECT p.simhash, p.page_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = c.collection_id AND p.page_id > c.newest_page
        ORDER BY p.collection_id, p.page_id
        OFFSET 0
    ) AS a ON true;
    near := ARRAY(
        SELECT (d.simhash, a)::pgsimhash._near_pair
        FROM unnest(batch) AS d
        JOIN unnest(arrived) AS a ON pgsimhash.hamming_distance(d.simhash, a) <= d.distance
    );
END
$$;

-- The batch with page ids: drawn ones, or in a dry run some above all others.
CREATE FUNCTION pgsimhash._with_ids(
    batch pgsimhash._decision[], newest bigint, dry_run boolean
) RETURNS pgsimhash._decision[]
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    drawn constant regclass := pg_get_serial_sequence('pgsimhash.pages', 'page_id');
    highest constant bigint := 281474976710656;
BEGIN
    IF NOT dry_run THEN
        batch[1].page_id := nextval(drawn);
        -- Someone inserted higher ids; or a cluster stopped between its commits.
        IF batch[1].page_id <= newest AND newest <= highest - cardinality(batch) THEN
            PERFORM setval(drawn, greatest(newest, nextval(drawn)));
            batch[1].page_id := nextval(drawn);
        END IF;
        -- The sequences of a cluster's workers start above 2 ^ 48.
        IF batch[1].page_id NOT BETWEEN newest + 1 AND highest - cardinality(batch) + 1 THEN
            RAISE EXCEPTION 'no page ids are left: they end at %, the newest page is %, and the '
                'sequence gave %', highest, newest, batch[1].page_id
                USING ERRCODE = 'PS030', HINT = 'On a worker of a cluster, connect to the '
                    'coordinator. Otherwise delete pages with ids that somebody chose, then run '
                    || format(
                        'SELECT setval(%L, max(page_id)) FROM %s', drawn, 'pgsimhash.pages'::regclass
                    );
        END IF;
    ELSE
        batch[1].page_id := 9223372036854775807 - cardinality(batch);
    END IF;
    FOR number IN 2..cardinality(batch) LOOP
        batch[number].page_id := CASE
            WHEN NOT dry_run THEN nextval(drawn) ELSE batch[1].page_id + number - 1 END;
    END LOOP;
    RETURN batch;
END
$$;

-- Writes the rows of a decided batch; returns the number of what its run saw, see _see_pages.
CREATE FUNCTION pgsimhash._store_batch(
    own_id integer, batch pgsimhash._decision[], pages json, known_simhashes bigint[],
    has_ids boolean, batch_run bigint, label text
) RETURNS bigint
    LANGUAGE plpgsql ${to_insert} AS $$
DECLARE
    sighting_number bigint;
    stored bigint;
    reread_ids bigint[];
    read_by integer[];
BEGIN
    INSERT INTO pgsimhash.pages (
        collection_id, page_id, url, simhash, fetched_at, html_digest, text_digest, signature_high,
        signature_low, duplicate_of, distance, run_id, title, canonical_url, canonical_on_site,
        language, noindex, alternates, features, tokens, html_bytes, structure, markdown, etag,
        last_modified, covered, selectors, address, indexed
    )
    SELECT
        own_id, d.page_id, d.url, d.simhash, coalesce(d.fetched_at, now()), d.html_digest,
        d.text_digest, d.signature_high, d.signature_low, d.original_id, d.original_distance,
        coalesce(batch_run, p.run_id), p.title, p.canonical_url, d.canonical IS NOT NULL,
        p.language, coalesce(p.noindex, false), p.alternates, p.features, p.tokens, p.html_bytes,
        p.structure, p.markdown, p.etag, p.last_modified, d.covered, d.selectors,
        CASE
            WHEN d.ignore_parameters IS NOT NULL
            THEN pgsimhash.page_address(d.url, d.ignore_parameters)
        END,
        row_number() OVER (PARTITION BY d.simhash ORDER BY d.number) = 1
            AND d.simhash <> ALL (known_simhashes)
    FROM unnest(batch) AS d
    JOIN json_populate_recordset(NULL::pgsimhash.pages, pages) WITH ORDINALITY AS p
        ON p.ordinality = d.number
    WHERE d.is_stored OR has_ids;
    GET DIAGNOSTICS stored = ROW_COUNT;
    ASSERT stored = (SELECT count(*) FROM unnest(batch) AS d WHERE d.is_stored OR has_ids),
        'a trigger or row security skipped new pages';
    IF has_ids THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(u.present_id), array_agg(u.selectors) INTO reread_ids, read_by
    FROM (
        SELECT DISTINCT ON (d.present_id) d.present_id, d.selectors
        FROM unnest(batch) AS d
        WHERE d.selectors_changed AND NOT d.is_stored
        ORDER BY d.present_id, d.number DESC
    ) AS u;
    IF reread_ids IS NOT NULL THEN
        UPDATE pgsimhash.pages AS p
        SET selectors = u.selectors
        FROM unnest(reread_ids, read_by) AS u (page_id, selectors)
        WHERE p.collection_id = own_id AND p.page_id = u.page_id;
    END IF;
    -- Each batch writes the run's row, so a run removed by a rollback or an undo reappears with
    -- the next batch. A single page belongs to no run unless the caller started one.
    IF batch_run IS NOT NULL THEN
        INSERT INTO pgsimhash.runs AS r (
            run_id, collection_id, label, pages, new, duplicates, updated, unchanged, gone,
            first_page, last_page
        )
        SELECT
            batch_run, own_id, label, count(d.present_id),
            count(*) FILTER (
                WHERE d.is_stored AND d.original_distance IS NULL AND d.version_id IS NULL
            ),
            count(d.original_distance),
            count(*) FILTER (
                WHERE d.is_stored AND d.original_distance IS NULL AND d.version_id IS NOT NULL
            ),
            count(d.present_id) FILTER (WHERE NOT d.is_stored AND d.is_gone IS NOT TRUE),
            count(d.present_id) FILTER (WHERE d.is_gone),
            min(d.page_id) FILTER (WHERE d.is_stored),
            max(d.page_id) FILTER (WHERE d.is_stored)
        FROM unnest(batch) AS d
        ON CONFLICT (collection_id, run_id) DO UPDATE SET
            finished_at = excluded.finished_at,
            ended_at = NULL,
            pages = r.pages + excluded.pages,
            new = r.new + excluded.new,
            duplicates = r.duplicates + excluded.duplicates,
            updated = r.updated + excluded.updated,
            unchanged = r.unchanged + excluded.unchanged,
            gone = r.gone + excluded.gone,
            first_page = least(r.first_page, excluded.first_page),
            last_page = greatest(r.last_page, excluded.last_page);
    END IF;
    SELECT pgsimhash._see_pages(
        own_id, array_agg(d.present_id), array_agg(d.fetched_at), array_agg(d.is_gone),
        array_agg(d.etag), array_agg(d.last_modified), array_agg(d.is_stored), batch_run
    )
    INTO sighting_number
    FROM unnest(batch) AS d
    WHERE d.present_id IS NOT NULL AND (batch_run IS NOT NULL OR NOT d.is_stored)
    HAVING count(*) > 0;
    RETURN sighting_number;
END
$$;

-- Records, in order, that versions were seen again or found gone: by a run, whose undo puts
-- last_seen back, or outside runs. Of a run it also records the stored versions, and returns their
-- number. The caller holds the lock, so later batches get higher numbers. No index of last_seen has
-- a column that changes, so only the first time writes to indexes.
CREATE FUNCTION pgsimhash._see_pages(
    own_id integer, page_ids bigint[], times timestamptz[], are_gone boolean[], etags text[],
    modified text[], are_stored boolean[], batch_run bigint
) RETURNS bigint
    LANGUAGE plpgsql ${to_insert} AS $$
DECLARE
    number constant bigint := CASE
        WHEN batch_run IS NOT NULL
        THEN nextval(pg_get_serial_sequence('pgsimhash.sightings', 'number'))
    END;
    -- Other nodes begin their transactions at other times.
    present constant timestamptz := now();
    -- Arrays, and no table beside them in the INSERT: a cluster could not plan it.
    ids bigint[];
    moments timestamptz[];
    befores timestamptz[];
    gone_ats timestamptz[];
    kept_etags text[];
    kept_modified text[];
BEGIN
    SELECT
        array_agg(u.page_id ORDER BY l.seen_at, u.page_id),
        array_agg(nullif(u.seen_at, present) ORDER BY l.seen_at, u.page_id),
        array_agg(l.seen_at ORDER BY l.seen_at, u.page_id),
        array_agg(l.gone_at ORDER BY l.seen_at, u.page_id)
    INTO ids, moments, befores, gone_ats
    FROM (
        SELECT
            CASE WHEN t.is_gone THEN -t.page_id ELSE t.page_id END AS page_id,
            max(coalesce(t.seen_at, present)) FILTER (WHERE t.is_stored IS NOT TRUE) AS seen_at
        FROM unnest(page_ids, times, are_gone, are_stored)
            AS t (page_id, seen_at, is_gone, is_stored)
        WHERE batch_run IS NOT NULL
        GROUP BY 1
    ) AS u
    LEFT JOIN LATERAL (
        SELECT s.seen_at, s.gone_at
        FROM pgsimhash.last_seen AS s
        WHERE s.collection_id = own_id AND s.page_id = abs(u.page_id)
        ORDER BY s.collection_id, s.page_id
        LIMIT 1
    ) AS l ON true;
    IF ids IS NOT NULL THEN
        INSERT INTO pgsimhash.sightings (
            collection_id, run_id, number, seen_at, page_ids, times, befores, gone_befores
        )
        VALUES (own_id, batch_run, number, present, ids, moments, befores, gone_ats);
    END IF;
    SELECT
        array_agg(n.page_id), array_agg(n.seen_at), array_agg(n.gone_at), array_agg(n.etag),
        array_agg(n.modified)
    INTO ids, moments, gone_ats, kept_etags, kept_modified
    FROM (
        SELECT
            p.page_id,
            greatest(p.fetched_at, max(u.moment) FILTER (WHERE NOT u.is_gone)) AS seen_at,
            (array_agg(CASE WHEN u.is_gone THEN u.moment END ORDER BY u.number DESC))[1] AS gone_at,
            (array_agg(u.etag ORDER BY u.validators = 0, u.number DESC))[1] AS etag,
            (array_agg(u.modified ORDER BY u.validators = 0, u.number DESC))[1] AS modified
        FROM (
            SELECT
                t.page_id, t.number, coalesce(t.is_gone, false) AS is_gone, t.etag, t.modified,
                coalesce(t.moment, present) AS moment, num_nonnulls(t.etag, t.modified) AS validators
            FROM unnest(page_ids, times, are_gone, etags, modified, are_stored)
                WITH ORDINALITY AS t (page_id, moment, is_gone, etag, modified, is_stored, number)
            WHERE t.is_stored IS NOT TRUE
        ) AS u
        CROSS JOIN ${page u.page_id} AS p
        GROUP BY p.page_id, p.fetched_at
        ORDER BY p.page_id
    ) AS n;
    INSERT INTO pgsimhash.last_seen AS s (
        collection_id, page_id, seen_at, gone_at, etag, last_modified, outside_at
    )
    SELECT
        own_id, u.page_id, u.seen_at, u.gone_at, u.etag, u.modified,
        CASE WHEN batch_run IS NULL THEN u.seen_at END
    FROM unnest(ids, moments, gone_ats, kept_etags, kept_modified)
        AS u (page_id, seen_at, gone_at, etag, modified)
    ON CONFLICT (collection_id, page_id) DO UPDATE SET
        seen_at = greatest(s.seen_at, excluded.seen_at), gone_at = excluded.gone_at,
        etag = pgsimhash._validator(s.etag, excluded.etag, excluded.last_modified),
        last_modified =
            pgsimhash._validator(s.last_modified, excluded.last_modified, excluded.etag),
        outside_at = greatest(s.outside_at, excluded.outside_at);
    RETURN number;
END
$$;

-- Counts pages of a run that selectors did not fit; the run may have no row yet.
CREATE FUNCTION pgsimhash._count_cuts(
    own_id integer, run_id bigint, label text, content_missing bigint, cut_short bigint
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO pgsimhash.runs AS r (run_id, collection_id, label, content_missing, cut_short)
    VALUES (run_id, own_id, label, content_missing, cut_short)
    ON CONFLICT ON CONSTRAINT runs_pkey DO UPDATE SET
        finished_at = excluded.finished_at, ended_at = NULL,
        content_missing = r.content_missing + excluded.content_missing,
        cut_short = r.cut_short + excluded.cut_short;
END
$$;

CREATE FUNCTION pgsimhash._end_runs(own_id integer, run_ids bigint[]) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
    UPDATE pgsimhash.runs AS r SET ended_at = now()
    WHERE r.collection_id = own_id AND r.run_id = ANY (run_ids);
$$;

-- A validator of a page: the known one, unless it was seen later with others.
CREATE FUNCTION pgsimhash._validator(known text, later text, later_other text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN num_nonnulls(later, later_other) = 0 THEN known ELSE later END;

CREATE FUNCTION pgsimhash._draw_run() RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN nextval(pg_get_serial_sequence('pgsimhash.runs', 'run_id'));

-- A promoted server may assign a rolled-back page_id again. A batch that saw no page only counts.
CREATE FUNCTION pgsimhash._batch_stored(
    own_id integer, run_id bigint, sighting bigint, page_ids bigint[], urls text[]
) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN run_id IS NULL THEN EXISTS (
            SELECT FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.page_id = ANY (page_ids) AND p.url = ANY (urls)
        )
        ELSE EXISTS (
            SELECT FROM pgsimhash.runs AS r
            LEFT JOIN pgsimhash.sightings AS s USING (collection_id, run_id)
            WHERE r.collection_id = own_id AND r.run_id = _batch_stored.run_id
                AND (sighting IS NULL OR s.number = sighting)
        )
    END;
$$;
