-- Collections: their names, their locks, and who may change them.

-- Writers are locked out: they write before or after the change of names, and notice it.
CREATE FUNCTION pgsimhash.rename_collection(
    old_name text, new_name text, swap boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locked integer[];
    present integer[];
    other constant text := gen_random_uuid();
BEGIN
    LOOP
        SELECT array_agg(c.collection_id ORDER BY c.collection_id) INTO present
        FROM pgsimhash.collections AS c
        WHERE c.name IN (old_name, new_name);
        -- Another session may have renamed one before it was locked.
        EXIT WHEN present IS NOT DISTINCT FROM locked;
        PERFORM pgsimhash._lock_collections(present, true);
        locked := present;
    END LOOP;
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

COMMENT ON FUNCTION pgsimhash.rename_collection(text, text, boolean) IS
    'Renames a collection, or swaps the names of two.';

-- The lock of add_page. A transaction that first writes your own rows must call this before.
CREATE FUNCTION pgsimhash.lock_collection(collection text DEFAULT 'default') RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgsimhash._lock_collection(collection);
END
$$;

COMMENT ON FUNCTION pgsimhash.lock_collection(text) IS
    'Locks a collection against other writers until the transaction ends; lookups continue.';

-- The id of a collection; an error if no collection has this name.
CREATE FUNCTION pgsimhash._id_of(collection text) RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
BEGIN
    IF own_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'PS001',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist',
            HINT = 'SELECT name FROM pgsimhash.collections lists the existing ones.';
    END IF;
    RETURN own_id;
END
$$;

-- A collection; it also sets the timeouts of the transaction, to save a statement. They are not part
-- of the query, which Citus runs on another node.
CREATE FUNCTION pgsimhash._collection_to_write(
    collection text, lock_timeout text, otherwise text, statement_timeout text,
    statement_otherwise text
) RETURNS TABLE (
    collection_id integer, name text, scheme text, layout text, default_distance smallint,
    keep_markdown boolean, normalize_urls boolean
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_locks constant text := current_setting('lock_timeout');
    own_statements constant text := current_setting('statement_timeout');
BEGIN
    PERFORM
        set_config(
            'statement_timeout',
            coalesce(
                statement_timeout,
                CASE
                    WHEN own_statements = '0' AND (lock_timeout IS NOT NULL OR own_locks = '0')
                    THEN statement_otherwise
                    ELSE own_statements
                END
            ),
            true
        ),
        set_config('lock_timeout', coalesce(lock_timeout, nullif(own_locks, '0'), otherwise), true),
        set_config(
            'idle_in_transaction_session_timeout',
            coalesce(
                nullif(current_setting('idle_in_transaction_session_timeout'), '0'), otherwise
            ),
            true
        );
    RETURN QUERY
    SELECT
        c.collection_id, c.name, c.scheme, pgsimhash.layout(), c.default_distance, c.keep_markdown,
        c.normalize_urls
    FROM pgsimhash.collections AS c
    WHERE c.name = collection;
END
$$;

-- With one snapshot for the whole transaction, rows that another writer committed during a wait for
-- a lock would be invisible.
CREATE FUNCTION pgsimhash._check_isolation() RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION
            'the transaction''s isolation level is %, which misses changes of other writers',
            current_setting('transaction_isolation')
            USING ERRCODE = 'PS030', HINT = 'Set it to READ COMMITTED.';
    END IF;
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
            AND c.relnamespace = (
                SELECT p.relnamespace FROM pg_class AS p WHERE p.oid = 'pgsimhash.pages'::regclass
            )
    );
BEGIN
    IF hidden IS NOT NULL THEN
        RAISE EXCEPTION 'row security may hide rows of % from "%"', hidden, current_user
            USING ERRCODE = 'PS031',
            HINT = 'Use a role that sees all of them: a superuser, one with BYPASSRLS, or the '
                'owner of the tables, if security is not forced.';
    END IF;
END
$$;

-- Loaders share a row (FOR KEY SHARE), writers exclude each other (FOR NO KEY UPDATE), and
-- deletions exclude both (FOR UPDATE). Rows are locked in the order of their ids, so that no two
-- sessions wait for each other; rows of deleted collections are skipped. Strengths are 1, 2 and 3:
-- two of them exclude each other if their sum is 4 or more. Strength 0 marks a rebuild.
--
-- PostgreSQL does not report who locked a row. So a shared advisory lock, which blocks nobody,
-- records the process, the collection and the strength.
--
-- lock_timeout limits the whole wait. It is in pieces, at least as long as the detection of deadlocks
-- takes, and a warning between them names the holders. Citus forwards a setting to the node of the
-- row if it is SET LOCAL.
CREATE FUNCTION pgsimhash._lock_rows(collection_ids integer[], strength integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own constant integer := 'pgsimhash.collections'::regclass::oid::integer;
    given constant text := current_setting('lock_timeout');
    patience constant interval := nullif(given::interval, interval '0');
    on_citus constant boolean := coalesce(
        current_setting('citus.propagate_set_commands', true) = 'local', false
    );
    began constant timestamptz := clock_timestamp();
    piece interval := interval '5 s';
    waited interval;
    names text;
    holders text;
    ends text;
    is_rebuilt boolean;
BEGIN
    LOOP
        BEGIN
            PERFORM set_config(
                'lock_timeout',
                greatest(
                    1, ceil(1000 * extract(
                        epoch FROM least(piece, began + patience - clock_timestamp())
                    ))::integer
                )::text,
                true
            );
            IF on_citus THEN
                EXECUTE 'SET LOCAL lock_timeout TO ' || quote_literal(current_setting('lock_timeout'));
            END IF;
            CASE strength
                WHEN 1 THEN
                    PERFORM FROM pgsimhash.collections AS c
                    WHERE c.collection_id = ANY (collection_ids)
                    ORDER BY c.collection_id FOR KEY SHARE;
                WHEN 2 THEN
                    PERFORM FROM pgsimhash.collections AS c
                    WHERE c.collection_id = ANY (collection_ids)
                    ORDER BY c.collection_id FOR NO KEY UPDATE;
                WHEN 3 THEN
                    PERFORM FROM pgsimhash.collections AS c
                    WHERE c.collection_id = ANY (collection_ids)
                    ORDER BY c.collection_id FOR UPDATE;
            END CASE;
            PERFORM set_config('lock_timeout', given, true);
            IF on_citus THEN
                EXECUTE 'SET LOCAL lock_timeout TO ' || quote_literal(given);
            END IF;
            PERFORM pg_advisory_xact_lock_shared(own, 4 * c + strength)
            FROM unnest(collection_ids) AS c;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            waited := clock_timestamp() - began;
        END;
        -- Separate for Citus: the next statement only reads this node.
        names := (
            SELECT string_agg(format('"%s"', c.name), ', ' ORDER BY c.name)
            FROM pgsimhash.collections AS c
            WHERE c.collection_id = ANY (collection_ids)
        );
        SELECT format(
            '%s s for collection %s, which %s',
            round(extract(epoch FROM waited)), names,
            coalesce(string_agg(h.who, ' and ' ORDER BY h.pid) || ' holds', 'others wait for too')
        ), string_agg(format('SELECT pg_terminate_backend(%s)', h.pid), '; ' ORDER BY h.pid)
            FILTER (WHERE h.pid IS NOT NULL), bool_or(h.rebuilds)
        INTO holders, ends, is_rebuilt
        FROM (
            SELECT l.pid, bool_or(l.objid::bigint % 4 = 0) AS rebuilds, CASE
                WHEN l.pid IS NULL THEN 'a prepared transaction (pg_prepared_xacts)'
                ELSE format('process %s (application "%s", user "%s"',
                    l.pid, a.application_name, a.usename)
                    -- Only the same role and monitors see this.
                    || coalesce(', ' || a.state, '')
                    || coalesce(format(' since %s', a.state_change::timestamptz(0)), '') || ')'
            END AS who
            FROM pg_locks AS l
            LEFT JOIN pg_stat_activity AS a USING (pid)
            WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
                AND l.database = (
                    SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()
                )
                AND l.locktype = 'advisory' AND l.objsubid = 2
                AND l.classid::bigint = own::bigint & 4294967295
                AND l.objid::bigint / 4 = ANY (collection_ids)
                AND (l.objid::bigint % 4 + strength >= 4 OR l.objid::bigint % 4 = 0)
            GROUP BY 1, 3
        ) AS h;
        IF is_rebuilt THEN
            RAISE EXCEPTION 'the collection is being rebuilt: gave up after waiting %', holders
                USING ERRCODE = 'PS002', HINT = 'Try again when the rebuild has ended.';
        END IF;
        IF waited >= patience THEN
            RAISE EXCEPTION 'gave up after waiting %', holders
                USING ERRCODE = 'PS032', HINT = concat_ws(
                    ', ', 'To end it: ' || ends, 'to wait longer, raise lock_timeout'
                );
        END IF;
        RAISE WARNING 'waiting %', holders USING ERRCODE = 'PS032';
        piece := 2 * piece;
    END LOOP;
END
$$;

-- All sessions lock in the order of the ids, so that no two wait for each other. Functions that
-- remove or move rows exclude loaders too.
CREATE FUNCTION pgsimhash._lock_collections(
    collection_ids integer[], loaders boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted constant integer[] := ARRAY(
        SELECT DISTINCT u FROM unnest(collection_ids) AS u WHERE u IS NOT NULL ORDER BY u
    );
BEGIN
    PERFORM pgsimhash._check_isolation();
    IF loaders THEN
        PERFORM pgsimhash._check_row_security();
    END IF;
    PERFORM pgsimhash._lock_rows(wanted, CASE WHEN loaders THEN 3 ELSE 2 END);
END
$$;

-- Like _lock_collections, by name; returns the id. Strength 1 only prevents renaming, deleting or
-- rebuilding the collection.
CREATE FUNCTION pgsimhash._lock_collection(collection text, strength integer DEFAULT 2)
RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id integer;
    locked integer;
BEGIN
    PERFORM pgsimhash._check_isolation();
    LOOP
        own_id := pgsimhash._id_of(collection);
        -- The name may have been given to another collection during the wait.
        EXIT WHEN own_id = locked;
        IF strength = 1 THEN
            PERFORM pgsimhash._lock_rows(ARRAY[own_id], 1);
        ELSE
            PERFORM pgsimhash._lock_collections(ARRAY[own_id], strength = 3);
        END IF;
        locked := own_id;
    END LOOP;
    RETURN own_id;
END
$$;

-- The distinct simhashes of slice 0, 1, ... of their whole range, as one value with eight bytes per
-- simhash, big-endian: five times as fast as COPY.
CREATE FUNCTION pgsimhash._simhash_slice(collection_id integer, number integer, slices integer)
RETURNS bytea
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_bitmapscan = off SET enable_hashagg = off SET enable_sort = off AS $$
DECLARE
    width constant numeric := 2 ^ 64::numeric / slices;
    first constant bigint := ceil(width * number) - 2 ^ 63::numeric;
    last constant bigint := ceil(width * (number + 1)) - 2 ^ 63::numeric - 1;
BEGIN
    RETURN (
        SELECT string_agg(int8send(s.simhash), ''::bytea)
        FROM (
            SELECT DISTINCT p.simhash
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = _simhash_slice.collection_id
                AND p.simhash BETWEEN first AND last
        ) AS s
    );
END
$$;

-- The bytes on disk of all tables of the schema, with their indexes.
CREATE FUNCTION pgsimhash._schema_bytes() RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant oid := (
        SELECT t.relnamespace FROM pg_class AS t WHERE t.oid = 'pgsimhash.pages'::regclass
    );
    bytes bigint;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        -- On the node that keeps them, pg_class has the shards too.
        bytes := (
            SELECT sum(citus_total_relation_size(d.logicalrelid))
            FROM pg_dist_partition AS d
            JOIN pg_class AS t ON t.oid = d.logicalrelid
            WHERE t.relnamespace = home
        );
    END IF;
    RETURN coalesce(bytes, (
        SELECT sum(pg_total_relation_size(t.oid))
        FROM pg_class AS t
        WHERE t.relnamespace = home AND t.relkind = 'r'
    ));
END
$$;

-- The rows of a collection in a table, by the planner's statistics; NULL without any.
CREATE FUNCTION pgsimhash._estimated_rows(relation regclass, own_id integer) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT
            f.share * c.reltuples / c.relpages
                * pg_relation_size(c.oid) / current_setting('block_size')::integer
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = c.relname
        CROSS JOIN unnest(s.most_common_vals::text::integer[], s.most_common_freqs)
            AS f (collection_id, share)
        WHERE c.oid = relation AND c.reltuples > 0 AND c.relpages > 0
            AND s.attname = 'collection_id' AND f.collection_id = own_id
    );
END
$$;

-- Up to 100,000 rows are counted. Of more, the planner's statistics say how many there are, and
-- 10,000 pages from 500 places say which share of them are duplicates, present versions and so on.
CREATE FUNCTION pgsimhash._count_collection(
    own_id integer, OUT pages bigint, OUT urls bigint, OUT duplicates bigint,
    OUT duplicate_bytes bigint, OUT simhashes bigint, OUT last_fetched timestamptz,
    OUT last_seen timestamptz, OUT estimated boolean
)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
    AS $$
DECLARE
    few constant integer := 100000;
    first_page bigint;
    last_page bigint;
BEGIN
    estimated := false;
    pages := (
        SELECT count(*)
        FROM (SELECT FROM pgsimhash.pages AS p WHERE p.collection_id = own_id LIMIT few + 1) AS p
    );
    IF pages > few THEN
        pages := pgsimhash._estimated_rows('pgsimhash.pages', own_id);
    END IF;
    IF pages > few THEN
        estimated := true;
        SELECT min(p.page_id), max(p.page_id) INTO first_page, last_page
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id;
        SELECT
            pages * avg(s.is_present::integer),
            pages * avg((s.distance IS NOT NULL)::integer),
            pages * avg(CASE WHEN s.distance IS NULL THEN 0 ELSE coalesce(s.html_bytes, 0) END),
            pages * avg(s.indexed::integer)
        INTO urls, duplicates, duplicate_bytes, simhashes
        FROM generate_series(0, 499) AS place
        CROSS JOIN LATERAL (
            SELECT p.distance, p.html_bytes, p.indexed, NOT EXISTS (
                SELECT FROM pgsimhash.pages AS newer
                WHERE newer.collection_id = own_id
                    AND newer.url = p.url
                    AND newer.page_id > p.page_id
            ) AS is_present
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id
                AND p.page_id >= first_page + (last_page - first_page) / 500 * place
            ORDER BY p.collection_id, p.page_id
            LIMIT 20
        ) AS s;
        last_fetched := (
            SELECT max(n.fetched_at)
            FROM (
                SELECT p.fetched_at
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id
                ORDER BY p.collection_id DESC, p.page_id DESC
                LIMIT 1000
            ) AS n
        );
        IF pgsimhash._estimated_rows('pgsimhash.last_seen', own_id) > 10 * few THEN
            last_seen := (
                SELECT max(s.seen_at)
                FROM generate_series(0, 499) AS place
                CROSS JOIN LATERAL (
                    SELECT s.seen_at
                    FROM pgsimhash.last_seen AS s
                    WHERE s.collection_id = own_id
                        AND s.page_id >= first_page + (last_page - first_page) / 500 * place
                    ORDER BY s.collection_id, s.page_id
                    LIMIT 20
                ) AS s
            );
            RETURN;
        END IF;
    ELSE
        SELECT
            count(*), count(DISTINCT p.url), count(p.distance),
            coalesce(sum(p.html_bytes) FILTER (WHERE p.distance IS NOT NULL), 0),
            count(DISTINCT p.simhash), max(p.fetched_at)
        INTO pages, urls, duplicates, duplicate_bytes, simhashes, last_fetched
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id;
    END IF;
    last_seen := (
        SELECT max(s.seen_at) FROM pgsimhash.last_seen AS s WHERE s.collection_id = own_id
    );
END
$$;

-- The scope global. Pages of a collection that this transaction rebuilds are in the new one too.
CREATE FUNCTION pgsimhash._siblings(own_id integer) RETURNS integer[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rebuilt constant integer := nullif(current_setting('simhashes.rebuilt', true), '');
BEGIN
    RETURN (
        SELECT array_agg(c.collection_id ORDER BY c.collection_id)
        FROM pgsimhash.collections AS own
        JOIN pgsimhash.collections AS c ON c.scheme = own.scheme
        WHERE own.collection_id = own_id AND c.collection_id IS DISTINCT FROM rebuilt
    );
END
$$;

-- Refuses writers until the transaction ends. The advisory lock tells those that wait for the row why.
CREATE FUNCTION pgsimhash._begin_rebuild(collection text, old_name text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 3);
BEGIN
    PERFORM
        pg_advisory_xact_lock_shared('pgsimhash.collections'::regclass::oid::integer, 4 * own_id),
        set_config('simhashes.rebuilt', own_id::text, true);
    PERFORM pgsimhash.rename_collection(collection, old_name);
END
$$;

-- Copies rows of a collection, which may be in another schema, except for times of pages that were
-- omitted. An error if the layout does not support the distance of a policy.
CREATE FUNCTION pgsimhash._copy_rows(
    from_schema text, source_id integer, collection_id integer, tables text[]
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY tables LOOP
        EXECUTE format(
            'INSERT INTO pgsimhash.%1$I (collection_id, %2$s) '
            'SELECT $1, %2$s FROM %3$I.%1$I AS o WHERE o.collection_id = $2 %4$s',
            one, (
                SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
                FROM pg_attribute AS a
                WHERE a.attrelid = format('pgsimhash.%I', one)::regclass
                    AND a.attnum > 0
                    AND NOT a.attisdropped
                    AND a.attidentity <> 'a'
                    AND a.attname <> 'collection_id'
            ), from_schema,
            CASE one WHEN 'last_seen' THEN
                'AND EXISTS (SELECT FROM pgsimhash.pages AS p '
                'WHERE p.collection_id = $1 AND p.page_id = o.page_id)'
            END
        ) USING _copy_rows.collection_id, source_id;
    END LOOP;
    PERFORM pgsimhash._policy_distance(max(p.distance))
    FROM pgsimhash.policies AS p
    WHERE p.collection_id = _copy_rows.collection_id;
END
$$;

-- Draws the ids that rows from another schema brought. setval would need another privilege.
CREATE FUNCTION pgsimhash._skip_ids(collection_id integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := collection_id;
BEGIN
    PERFORM setval(i.drawn, greatest(i.newest, nextval(i.drawn)))
    FROM (
        SELECT pg_get_serial_sequence('pgsimhash.pages', 'page_id')::regclass AS drawn,
            (SELECT max(p.page_id) FROM pgsimhash.pages AS p WHERE p.collection_id = own_id) AS newest
        UNION ALL
        SELECT pg_get_serial_sequence('pgsimhash.runs', 'run_id')::regclass,
            (SELECT max(r.run_id) FROM pgsimhash.runs AS r WHERE r.collection_id = own_id)
        UNION ALL
        SELECT pg_get_serial_sequence('pgsimhash.marks', 'mark_id')::regclass,
            (SELECT max(m.mark_id) FROM pgsimhash.marks AS m WHERE m.collection_id = own_id)
    ) AS i
    WHERE i.newest IS NOT NULL;
END
$$;
