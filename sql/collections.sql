-- Collections: their names, their locks, and who may change them.

-- Renames a collection, or swaps the names of two.
--
-- Writers are locked out: they write before or after the change of names, and notice it.
CREATE FUNCTION pgsimhash.rename_collection(
    old_name text, new_name text, swap boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other constant text := gen_random_uuid();
BEGIN
    PERFORM pgsimhash._lock_names(ARRAY[old_name, new_name], 3);
    PERFORM pgsimhash._id_of(old_name);
    IF coalesce(new_name, '') = '' THEN
        RAISE EXCEPTION 'the name of a collection is empty'
            USING ERRCODE = 'PS004', HINT = 'Give one.';
    ELSIF old_name = new_name THEN
        RETURN;
    ELSIF swap THEN
        PERFORM pgsimhash._id_of(new_name);
        -- Names must be unique at any moment.
        UPDATE pgsimhash.collections SET name = other WHERE name = new_name;
    ELSIF EXISTS (SELECT FROM pgsimhash.collections AS c WHERE c.name = new_name) THEN
        RAISE EXCEPTION 'collection "%" exists already', new_name
            USING ERRCODE = 'PS004',
            HINT = 'Give another name, or swap the two names (swap, --swap).';
    END IF;
    UPDATE pgsimhash.collections SET name = new_name WHERE name = old_name;
    UPDATE pgsimhash.collections SET name = old_name WHERE name = other;
END
$$;

-- Locks a collection until the transaction ends, and returns its id; lookups continue. Strength 2
-- excludes other writers, 3 also those who insert pages with SQL; 1 only prevents that the
-- collection is renamed, deleted or rebuilt.
CREATE FUNCTION pgsimhash._lock_collection(collection text, strength integer) RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgsimhash._lock_names(ARRAY[collection], strength);
    RETURN pgsimhash._id_of(collection);
END
$$;

-- Locks the collections of some names. If others have the names after the wait, it first gives the
-- locks back: writers that waited for swapped names would wait for each other.
CREATE FUNCTION pgsimhash._lock_names(names text[], strength integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids integer[];
BEGIN
    LOOP
        ids := pgsimhash._ids_of(names);
        BEGIN
            PERFORM pgsimhash._lock_collections(ids, strength);
            IF ids = pgsimhash._ids_of(names) THEN
                RETURN;
            END IF;
            RAISE SQLSTATE 'PS003';
        EXCEPTION WHEN SQLSTATE 'PS003' THEN
            -- Another session renamed one.
        END;
    END LOOP;
END
$$;

CREATE FUNCTION pgsimhash._ids_of(names text[]) RETURNS integer[]
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(c.collection_id ORDER BY c.collection_id), '{}')
    FROM pgsimhash.collections AS c
    WHERE c.name = ANY (names);
$$;

-- Locks a collection against other writers until the transaction ends; returns its id.
--
-- A transaction that first writes your own rows must call this before add_page.
CREATE FUNCTION pgsimhash.lock_collection(collection text DEFAULT 'default') RETURNS integer
    LANGUAGE sql VOLATILE
    RETURN pgsimhash._lock_collection(collection, 2);

-- The id of the collection with a name and a scheme, by default any; an error if there is none.
CREATE FUNCTION pgsimhash._id_of(collection text, scheme text DEFAULT NULL) RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := (
        SELECT c.collection_id
        FROM pgsimhash.collections AS c
        WHERE c.name = collection AND c.scheme = coalesce(_id_of.scheme, c.scheme)
    );
BEGIN
    IF own_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'PS001',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist'
                || coalesce(' with the scheme ' || scheme, ''),
            HINT = 'pgsimhash.collections lists the existing ones, create_collection() creates one.';
    END IF;
    RETURN own_id;
END
$$;

-- A collection. To save a statement, it also limits how long the transaction waits for locks, runs a
-- statement, and idles: a writer that stops within a transaction of the store is terminated, because
-- others wait for its locks. Timeouts that the user has set stay. They are not part of the query,
-- which another node may run.
CREATE FUNCTION pgsimhash._collection(collection text, limited boolean) RETURNS TABLE (
    collection_id integer, name text, scheme text, layout text, default_distance smallint,
    keep_markdown boolean, normalize_urls boolean, selectors text
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    no_lock_timeout constant boolean := current_setting('lock_timeout') = '0';
BEGIN
    PERFORM set_config(s.setting, s.value, true)
    FROM (VALUES
        ('lock_timeout', '5min', true),
        ('idle_in_transaction_session_timeout', '5min', true),
        ('statement_timeout', '10min', no_lock_timeout)
    ) AS s (setting, value, applies)
    WHERE limited AND s.applies AND current_setting(s.setting) = '0';
    RETURN QUERY
    SELECT
        c.collection_id, c.name, c.scheme, pgsimhash.layout(), c.default_distance, c.keep_markdown,
        c.normalize_urls, (
            SELECT json_agg(
                json_build_array(p.host, p.path, p.content, p.ignore)
                ORDER BY p.path = '*', length(p.path) DESC, p.path COLLATE "C"
            )::text
            FROM pgsimhash.policies AS p
            WHERE p.collection_id = c.collection_id AND num_nonnulls(p.content, p.ignore) > 0
        )
    FROM pgsimhash.collections AS c
    WHERE c.name = collection;
END
$$;

-- The names of all collections, or of one.
CREATE FUNCTION pgsimhash._collection_names(own_id integer) RETURNS SETOF text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.name
    FROM pgsimhash.collections AS c
    WHERE c.collection_id = coalesce(own_id, c.collection_id)
    ORDER BY c.name;
$$;

-- Creates a collection for simhashes of a scheme, any name of yours, unless it exists; returns its id.
CREATE FUNCTION pgsimhash.create_collection(
    name text, scheme text, distance integer DEFAULT NULL, keep_markdown boolean DEFAULT NULL,
    normalize_urls boolean DEFAULT NULL
) RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
DECLARE
    present pgsimhash.collections;
BEGIN
    IF coalesce(name, '') = '' OR coalesce(scheme, '') = '' OR distance NOT BETWEEN 0 AND ${largest} THEN
        RAISE EXCEPTION 'a collection needs a name, a scheme, and a distance of 0 to ${largest} bits'
            USING ERRCODE = 'PS010', HINT = 'Correct them; the distance can be omitted.';
    END IF;
    -- Each attempt draws an id, of which there are eight million.
    IF NOT EXISTS (SELECT FROM pgsimhash.collections AS c WHERE c.name = create_collection.name) THEN
        INSERT INTO pgsimhash.collections (
            name, scheme, default_distance, keep_markdown, normalize_urls
        )
        VALUES (
            name, scheme, coalesce(distance, ${distance}), coalesce(keep_markdown, false),
            coalesce(normalize_urls, false)
        )
        ON CONFLICT DO NOTHING;
    END IF;
    SELECT c.* INTO STRICT present
    FROM pgsimhash.collections AS c WHERE c.name = create_collection.name;
    IF present.scheme <> scheme OR present.default_distance <> distance
        OR present.keep_markdown <> keep_markdown OR present.normalize_urls <> normalize_urls
    THEN
        RAISE EXCEPTION 'collection "%" exists with other settings', name
            USING ERRCODE = 'PS004',
            DETAIL = format(
                'scheme %s, distance %s, keep_markdown %s, normalize_urls %s', present.scheme,
                present.default_distance, present.keep_markdown, present.normalize_urls
            ),
            HINT = 'Give another name, or these settings, or only the scheme.';
    END IF;
    RETURN present.collection_id;
END
$$;

-- Sets what is not NULL.
CREATE FUNCTION pgsimhash._set_collection(own_id integer, distance integer, keep_markdown boolean)
RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pgsimhash.collections AS c
    SET default_distance = coalesce(distance, c.default_distance),
        keep_markdown = coalesce(_set_collection.keep_markdown, c.keep_markdown)
    WHERE c.collection_id = own_id;
$$;

-- Deletes a collection; returns the number of versions of pages.
CREATE FUNCTION pgsimhash.delete_collection(collection text) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 3);
    deleted bigint;
    one text;
BEGIN
    DELETE FROM pgsimhash.pages WHERE collection_id = own_id;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    FOREACH one IN ARRAY
        '{last_seen,clusters,runs,sightings,sources,redirects,marks,policies,collections}'::text[]
    LOOP
        EXECUTE format('DELETE FROM pgsimhash.%I WHERE collection_id = $1', one) USING own_id;
    END LOOP;
    RETURN deleted;
END
$$;

-- Rows hidden by a policy would count as deleted, and simhashes of hidden pages would be removed.
CREATE FUNCTION pgsimhash._check_row_security() RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    hidden constant text := (
        SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.relname)
        FROM pg_class AS c
        WHERE c.relrowsecurity
            AND row_security_active(c.oid)
            AND c.relnamespace = 'pgsimhash'::regnamespace
    );
BEGIN
    IF hidden IS NOT NULL THEN
        RAISE EXCEPTION 'row security may hide rows of % from "%"', hidden, current_user
            USING ERRCODE = 'PS030',
            HINT = 'Use a role that sees all of them: a superuser, one with BYPASSRLS, or the '
                'owner of the tables, if security is not forced.';
    END IF;
END
$$;

-- Loaders share a row (FOR KEY SHARE), writers exclude each other (FOR NO KEY UPDATE), and
-- deletions exclude both (FOR UPDATE). Rows are locked in the order of their ids, so that no two
-- sessions wait for each other; rows of deleted collections are skipped. Strengths are 1, 2 and 3:
-- two of them exclude each other if their sum is 4 or more.
--
-- Writers and deletions first wait for an advisory lock. A wait for a row can last until the end of a
-- transaction that gave the row back with a savepoint, and that may want it again: a deadlock. Loaders
-- have no advisory lock. Deletions wait for them without theirs, so that writers go on. A negative key
-- marks a rebuild.
--
-- lock_timeout limits the whole wait. After 5 s, longer than a deadlock stays undetected, a rebuild is
-- an error, and others get a warning. SET LOCAL, unlike set_config(), also reaches the node of the row.
CREATE FUNCTION pgsimhash._lock_collections(collection_ids integer[], strength integer)
RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids constant integer[] := coalesce(collection_ids, '{}');  -- in order
    own constant integer := 'pgsimhash.collections'::regclass::oid::integer;
    given constant text := current_setting('lock_timeout');
    -- Without a limit the longest that can be set.
    patience constant interval := coalesce(nullif(given::interval, interval '0'), interval '24 days');
    began constant timestamptz := clock_timestamp();
    piece interval := least(interval '5 s', patience);
    waits_for_loaders boolean := false;
    waited interval;
    wait text;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION
            'the transaction''s isolation level is %, which misses changes of other writers',
            current_setting('transaction_isolation')
            USING ERRCODE = 'PS030', HINT = 'Set it to READ COMMITTED.';
    ELSIF strength = 3 THEN
        PERFORM pgsimhash._check_row_security();
    END IF;
    -- Usually nobody else has it, and nothing has to be set.
    IF strength = 2 AND cardinality(ids) = 1 AND pg_try_advisory_xact_lock(own, ids[1]) THEN
        PERFORM FROM pgsimhash.collections AS c
        WHERE c.collection_id = ids[1]
        FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    LOOP
        BEGIN
            EXECUTE 'SET LOCAL lock_timeout TO ' || greatest(
                1, ceil(1000 * extract(epoch FROM began + piece - clock_timestamp()))::integer
            );
            IF strength > 1 AND NOT waits_for_loaders THEN
                PERFORM pg_advisory_xact_lock(own, c) FROM unnest(ids) AS c;
            END IF;
            EXECUTE 'SELECT FROM pgsimhash.collections AS c WHERE c.collection_id = ANY ($1) '
                'ORDER BY c.collection_id FOR ' || CASE
                    WHEN strength = 1 THEN 'KEY SHARE'
                    WHEN strength = 2 THEN 'NO KEY UPDATE'
                    WHEN waits_for_loaders THEN 'UPDATE'
                    ELSE 'UPDATE NOWAIT'
                END USING ids;
            IF waits_for_loaders THEN
                RAISE lock_not_available;
            END IF;
            EXECUTE 'SET LOCAL lock_timeout TO ' || quote_literal(given);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            waited := clock_timestamp() - began;
        END;
        waits_for_loaders := strength = 3 AND NOT waits_for_loaders AND waited < piece;
        CONTINUE WHEN waited < piece;
        wait := format('waiting %s s for collection %s', round(extract(epoch FROM waited)), (
            SELECT string_agg(format('"%s"', c.name), ', ' ORDER BY c.name)
            FROM pgsimhash.collections AS c
            WHERE c.collection_id = ANY (ids)
        ));
        IF NOT (
            SELECT bool_and(
                pg_try_advisory_lock_shared(own, -c) AND pg_advisory_unlock_shared(own, -c)
            )
            FROM unnest(ids) AS c
        ) THEN
            RAISE EXCEPTION 'the collection is being rebuilt: gave up after %', wait
                USING ERRCODE = 'PS002', HINT = 'Try again when the rebuild has ended.';
        ELSIF waited >= patience THEN
            RAISE EXCEPTION 'gave up after %, which another transaction has locked', wait
                USING ERRCODE = 'PS032', HINT = 'End that transaction, or raise lock_timeout.';
        END IF;
        RAISE WARNING '%; SELECT pg_blocking_pids(%) tells for whom', wait, pg_backend_pid()
            USING ERRCODE = 'PS032';
        piece := patience;
    END LOOP;
END
$$;

-- The scope global.
CREATE FUNCTION pgsimhash._siblings(own_id integer) RETURNS integer[]
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(c.collection_id ORDER BY c.collection_id)
    FROM pgsimhash.collections AS own
    JOIN pgsimhash.collections AS c ON c.scheme = own.scheme
    WHERE own.collection_id = own_id;
$$;

-- Refuses writers until the transaction ends. The advisory lock tells those that wait for the row why.
-- An error if the old collection will be replaced, and the role may not delete it.
CREATE FUNCTION pgsimhash._begin_rebuild(collection text, old_name text, replaced boolean)
RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 3);
BEGIN
    IF replaced AND NOT has_table_privilege('pgsimhash.collections'::regclass, 'DELETE') THEN
        RAISE EXCEPTION 'permission denied to delete collection "%"', collection
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM
        pg_advisory_xact_lock('pgsimhash.collections'::regclass::oid::integer, -own_id),
        set_config('simhashes.rebuilt', own_id::text, true);
    PERFORM pgsimhash.rename_collection(collection, old_name);
END
$$;

CREATE FUNCTION pgsimhash._end_rebuild() RETURNS text
    LANGUAGE sql VOLATILE
    RETURN set_config('simhashes.rebuilt', '', true);

-- Copies rows of a collection, which may be in another schema, except for times of pages that were
-- omitted. What was kept stays covered, and nothing else, whatever new verdicts say. An error if the
-- layout does not support the distance of a policy. Draws the ids of rows that another schema gave.
--
-- The planner expects one page in the new collection, where a million may be: they are joined by hash,
-- and an array is hashed only as a constant.
CREATE FUNCTION pgsimhash._copy_rows(
    from_schema text, source_id integer, own_id integer, tables text[]
) RETURNS void
    LANGUAGE plpgsql ${by_hash} SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    one text;
    id text;
    drawn regclass;
    newest bigint;
    uncovered bigint[];
BEGIN
    FOREACH one IN ARRAY tables LOOP
        EXECUTE format(
            'INSERT INTO pgsimhash.%1$I (collection_id, %2$s) '
            'SELECT $1, %2$s FROM %3$I.%1$I AS o WHERE o.collection_id = $2',
            one, (
                SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
                FROM pg_attribute AS a
                -- The other schema can have another revision.
                JOIN pg_attribute AS b USING (attname)
                WHERE a.attrelid = format('pgsimhash.%I', one)::regclass
                    AND b.attrelid = format('%I.%I', from_schema, one)::regclass
                    AND a.attnum > 0
                    AND NOT a.attisdropped
                    AND a.attidentity <> 'a'
                    AND a.attname <> 'collection_id'
            ), from_schema
        ) USING own_id, source_id;
    END LOOP;
    -- Not by a join above: a cluster has the other schema on another node.
    DELETE FROM pgsimhash.last_seen AS s
    WHERE s.collection_id = own_id AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS p WHERE p.collection_id = own_id AND p.page_id = s.page_id
    );
    EXECUTE format(
        'SELECT array_agg(o.page_id) FROM %I.pages AS o WHERE o.collection_id = $1 AND NOT o.covered',
        from_schema
    ) INTO uncovered USING source_id;
    UPDATE pgsimhash.pages AS p
    SET covered = NOT p.covered
    WHERE p.collection_id = own_id
        AND p.covered = (p.page_id = ANY (coalesce(uncovered, '{}')));
    PERFORM pgsimhash._check_policy_distance(max(p.distance))
    FROM pgsimhash.policies AS p
    WHERE p.collection_id = own_id;
    FOR one, id IN VALUES
        ('pages', 'page_id'), ('runs', 'run_id'), ('sightings', 'number'), ('marks', 'mark_id')
    LOOP
        drawn := pg_get_serial_sequence(format('pgsimhash.%I', one), id);
        EXECUTE format('SELECT max(%I) FROM pgsimhash.%I WHERE collection_id = $1', id, one)
            INTO newest USING own_id;
        -- Batches of runs name deleted pages too, whose ids no other page may get.
        newest := greatest(
            newest, nextval(pg_get_serial_sequence(format('%I.%I', from_schema, one), id))
        );
        PERFORM setval(drawn, newest) WHERE newest > nextval(drawn);
    END LOOP;
END
$$;
