-- Collections: their names, what they hold, and who may change them at this moment.

-- Under the locks of writers: what they wrote before they wrote under the old names, and those that
-- come after find out.
CREATE FUNCTION pgsimhash.rename_collection(
    old_name text, new_name text, swap boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    locked integer[];
    present integer[];
    other constant text := gen_random_uuid();
BEGIN
    LOOP
        SELECT array_agg(c.collection_id ORDER BY c.collection_id) INTO present
        FROM pgsimhash.collections AS c
        WHERE c.name IN (old_name, new_name);
        -- Until it was locked, someone else could rename one.
        EXIT WHEN present IS NOT DISTINCT FROM locked;
        PERFORM pgsimhash._lock_collections(present, true);
        locked := present;
    END LOOP;
    PERFORM pgsimhash._id_of(old_name);
    IF coalesce(new_name, '') = '' THEN
        RAISE EXCEPTION 'a collection has a name'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give one that is not empty.';
    ELSIF old_name = new_name THEN
        RETURN;
    ELSIF swap THEN
        PERFORM pgsimhash._id_of(new_name);
        -- No name may be there twice, not for a moment either.
        UPDATE pgsimhash.collections SET name = other WHERE name = new_name;
    ELSIF EXISTS (SELECT FROM pgsimhash.collections AS c WHERE c.name = new_name) THEN
        RAISE EXCEPTION 'collection "%" exists already', new_name
            USING ERRCODE = 'unique_violation',
            HINT = 'Give another name, or let the two exchange their names (swap, --swap).';
    END IF;
    UPDATE pgsimhash.collections SET name = new_name WHERE name = old_name;
    UPDATE pgsimhash.collections SET name = old_name WHERE name = other;
END
$$;

COMMENT ON FUNCTION pgsimhash.rename_collection(text, text, boolean) IS
    'Gives a collection another name, or exchanges two names.';

CREATE FUNCTION pgsimhash.count_simhashes(collection text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    counted bigint;
BEGIN
    EXECUTE format(
        'SELECT count(*) FROM pgsimhash.collections AS c JOIN %s AS s USING (collection_id) '
        'WHERE c.name = $1',
        pgsimhash._name_for(collection, 'simhashes')
    ) INTO counted USING collection;
    RETURN counted;
END
$$;

COMMENT ON FUNCTION pgsimhash.count_simhashes(text) IS
    'How many distinct simhashes a collection has.';

-- The lock that adding a page takes. A transaction that writes rows of its own first takes it before.
CREATE FUNCTION pgsimhash.lock_collection(collection text DEFAULT 'default') RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM pgsimhash._lock_collection(collection);
END
$$;

COMMENT ON FUNCTION pgsimhash.lock_collection(text) IS
    'Lets nobody else add or delete pages of a collection until the transaction ends; lookups go on.';

-- Internal: for the functions above and for the package, and may change with any release.

CREATE FUNCTION pgsimhash._id_of(collection text) RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_id constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
BEGIN
    IF own_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'undefined_object',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist',
            HINT = 'SELECT name FROM pgsimhash.collections lists the ones that do.';
    END IF;
    RETURN own_id;
END
$$;

COMMENT ON FUNCTION pgsimhash._id_of(text) IS
    'The number of a collection; an error where there is none of this name.';

-- The functions of the default layout hand over to those of another by this.
CREATE FUNCTION pgsimhash._name_for(collection text, name text) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format(
        'pgsimhash.%I', _name_for.name || pgsimhash._suffix_of(pgsimhash._id_of(collection))
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._name_for(text, text) IS
    'What a table or function is called for the layout of a collection.';

CREATE FUNCTION pgsimhash._check_lookup(distance integer, layout text, nulls boolean)
RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    largest constant integer := (
        SELECT l.largest_distance FROM pgsimhash.layouts AS l WHERE l.name = layout
    );
BEGIN
    IF distance IS NULL OR distance NOT BETWEEN 0 AND largest THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'distance ' || coalesce(distance::text, 'NULL')
                || ' is not one that layout ' || layout || ' answers',
            HINT = 'Ask for a distance from 0 to ' || largest || '.';
    END IF;
    IF nulls THEN
        RAISE EXCEPTION 'a query simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Leave it out of the lookup.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._check_lookup(integer, text, boolean) IS
    'Raises an error if a distance is not one that the layout answers, or a query is NULL.';

-- Under one snapshot for the whole transaction, what another writer committed while we waited for
-- a lock, or to which layout the collection moved, would stay unseen.
CREATE FUNCTION pgsimhash._check_isolation() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION
            'the transaction''s isolation level is %, under which what other writers do is missed',
            current_setting('transaction_isolation')
            USING ERRCODE = 'invalid_transaction_state', HINT = 'Set it to READ COMMITTED.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._check_isolation() IS
    'Raises an error if statements of the transaction do not see what others have committed.';

-- What a policy hides would count as gone, and what only hidden pages have would be removed.
CREATE FUNCTION pgsimhash._check_row_security() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
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
            USING ERRCODE = 'invalid_role_specification',
            HINT = 'Do it as a role that sees all of them: a superuser, one with BYPASSRLS, or the '
                'owner of the tables, where security is not forced.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._check_row_security() IS
    'Raises an error if the role may not see all rows of the schema''s tables.';

-- Loaders share a row (FOR KEY SHARE), writers keep other writers out (FOR NO KEY UPDATE), and who
-- removes or moves rows keeps all of them out (FOR UPDATE). Rows are locked in the order of their
-- numbers, so that none waits for one that waits for it; those of collections that are gone are not.
-- Strengths are 1, 2 and 3: two of them exclude each other if their sum is 4 or more.
--
-- PostgreSQL does not tell who locked a row. So a shared advisory lock, for which nobody waits, names
-- the process, the collection and the strength.
--
-- In pieces, between which a warning says for whom it waits: it reaches the client at once. No piece
-- is shorter than what finds deadlocks takes. Citus hands a setting to the node of the row if it comes as
-- SET LOCAL.
CREATE FUNCTION pgsimhash._lock_rows(collection_ids integer[], strength integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
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
        -- By itself, for Citus: the rest is about this node.
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
            FILTER (WHERE h.pid IS NOT NULL)
        INTO holders, ends
        FROM (
            SELECT DISTINCT l.pid, CASE
                WHEN l.pid IS NULL THEN 'a prepared transaction (pg_prepared_xacts)'
                ELSE format('process %s (application "%s", user "%s"',
                    l.pid, a.application_name, a.usename)
                    -- Which only the same role and monitors are told.
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
                AND l.objid::bigint % 4 + strength >= 4
        ) AS h;
        IF waited >= patience THEN
            RAISE EXCEPTION 'gave up after waiting %', holders
                USING ERRCODE = 'lock_not_available', HINT = concat_ws(
                    ', ', 'To end it: ' || ends, 'to wait longer, raise lock_timeout'
                );
        END IF;
        RAISE WARNING 'waiting %', holders USING ERRCODE = 'lock_not_available';
        piece := 2 * piece;
    END LOOP;
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_rows(integer[], integer) IS
    'Locks the rows of collections until the commit; who waits is warned, and lock_timeout is for '
    'all.';

-- All lock in the order of the ids, so that no two writers wait for each other. Functions that remove or
-- move rows keep loaders out too.
CREATE FUNCTION pgsimhash._lock_collections(
    collection_ids integer[], loaders boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own constant integer := 'pgsimhash.collections'::regclass::oid::integer;
    wanted constant integer[] := ARRAY(
        SELECT DISTINCT u FROM unnest(collection_ids) AS u WHERE u IS NOT NULL ORDER BY u
    );
BEGIN
    PERFORM pgsimhash._check_isolation();
    IF loaders THEN
        PERFORM pgsimhash._check_row_security();
    END IF;
    PERFORM pgsimhash._lock_rows(wanted, CASE WHEN loaders THEN 3 ELSE 2 END);
    PERFORM set_config(
        'simhashes.locked',
        concat(
            current_setting('simhashes.locked', true),
            (
                SELECT string_agg(format(' %s.%s ', own, u), '')
                FROM unnest(wanted) AS u
                WHERE NOT pgsimhash._is_locked(u)
            )
        ),
        true
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_collections(integer[], boolean) IS
    'Waits until nobody else changes the pages of collections, or adds simhashes without pages, and '
    'holds them until the commit.';

-- A row does not say whether it is this transaction that locked it.
CREATE FUNCTION pgsimhash._is_locked(own_id integer) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN strpos(
        coalesce(current_setting('simhashes.locked', true), ''),
        format(' %s.%s ', 'pgsimhash.collections'::regclass::oid::integer, own_id)
    ) > 0;

COMMENT ON FUNCTION pgsimhash._is_locked(integer) IS
    'Whether _lock_collections locked a collection in this transaction.';

CREATE FUNCTION pgsimhash._lock_collection(collection text, loaders boolean DEFAULT false)
RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted integer;
    locked integer;
BEGIN
    LOOP
        wanted := pgsimhash._writable_collection(collection);
        -- While it waited, the name could become another one's.
        EXIT WHEN wanted = locked;
        PERFORM pgsimhash._lock_collections(ARRAY[wanted], loaders);
        locked := wanted;
    END LOOP;
    RETURN wanted;
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_collection(text, boolean) IS
    'Does as _lock_collections for one that goes by its name, and returns its number.';

CREATE FUNCTION pgsimhash._hold_collection(collection text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted integer;
    held integer;
BEGIN
    PERFORM pgsimhash._check_isolation();
    LOOP
        wanted := pgsimhash._writable_collection(collection);
        EXIT WHEN wanted = held;
        PERFORM pgsimhash._lock_rows(ARRAY[wanted], 1);
        held := wanted;
    END LOOP;
    RETURN wanted;
END
$$;

COMMENT ON FUNCTION pgsimhash._hold_collection(text) IS
    'Lets nobody rename, delete or rebuild a collection until the commit, and returns its number.';

CREATE FUNCTION pgsimhash._writable_collection(collection text) RETURNS integer
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    present record;
BEGIN
    SELECT own.own_id, s.name AS source INTO present
    FROM (SELECT pgsimhash._id_of(collection) AS own_id) AS own
    LEFT JOIN pgsimhash.rebuilds AS r ON r.collection_id = own.own_id
    LEFT JOIN pgsimhash.collections AS s ON s.collection_id = r.source_id;
    IF present.source IS NOT NULL THEN
        RAISE EXCEPTION 'collection "%" is being made from "%", and so written by nobody else',
            collection, present.source
            USING ERRCODE = 'object_in_use',
            HINT = format(
                'Finish that: pgsimhash collection rebuild %s --into %s.',
                present.source, collection
            );
    END IF;
    RETURN present.own_id;
END
$$;

COMMENT ON FUNCTION pgsimhash._writable_collection(text) IS
    'The number of a collection; an error where it is being made from another.';

CREATE FUNCTION pgsimhash._suffix_of(own_id integer) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT l.suffix
        FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.layout
        WHERE c.collection_id = own_id
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._suffix_of(integer) IS
    'What the names of the table and functions of a collection''s layout end in.';

-- One value of eight bytes a simhash: five times as fast as COPY, which sends a message a row.
CREATE FUNCTION pgsimhash._simhash_slice(collection text, number integer, slices integer)
RETURNS bytea
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    slice bytea;
BEGIN
    EXECUTE format(
        'SELECT string_agg(int8send(s.simhash), ''''::bytea) '
        'FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.layout '
        'JOIN %s AS s '
        'ON s.prefix_1 >= (c.collection_id::bigint << 40)'
        ' + (($2::bigint << l.prefix_bits) / $3) '
        'AND s.prefix_1 < (c.collection_id::bigint << 40)'
        ' + ((($2 + 1)::bigint << l.prefix_bits) / $3) '
        'WHERE c.name = $1',
        pgsimhash._name_for(collection, 'simhashes')
    ) INTO slice USING collection, number, slices;
    RETURN slice;
END
$$;

COMMENT ON FUNCTION pgsimhash._simhash_slice(text, integer, integer) IS
    'Slice number 0, 1, ... of a collection''s simhashes: eight bytes each, high byte first.';

-- A large table is not counted: its rows are as many as the planner takes it to have, as dense as when
-- it was analysed last.
CREATE FUNCTION pgsimhash._bytes_on_disk(
    tables text[], own_rows bigint, OUT whole bigint, OUT share bigint
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    all_rows double precision;
BEGIN
    whole := (SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(tables) AS t);
    SELECT
        c.reltuples::double precision / c.relpages
            * (pg_relation_size(c.oid) / current_setting('block_size')::bigint)
    INTO all_rows
    FROM pg_class AS c
    WHERE c.oid = tables[1]::regclass AND c.relpages > 1000 AND c.reltuples > 0;
    IF all_rows IS NULL THEN
        EXECUTE 'SELECT count(*) FROM ' || tables[1] INTO all_rows;
    END IF;
    share := whole * (own_rows / greatest(all_rows, own_rows, 1));
END
$$;

COMMENT ON FUNCTION pgsimhash._bytes_on_disk(text[], bigint) IS
    'The bytes of tables with indexes, and the share of so many rows of the first one.';

-- Those that are being made from others have what those have, and do not count.
CREATE FUNCTION pgsimhash._siblings(own_id integer) RETURNS integer[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT array_agg(c.collection_id ORDER BY c.collection_id)
        FROM pgsimhash.collections AS own
        LEFT JOIN pgsimhash.rebuilds AS o ON o.collection_id = own.collection_id
        JOIN pgsimhash.collections AS c ON c.scheme = own.scheme
        LEFT JOIN pgsimhash.rebuilds AS r ON r.collection_id = c.collection_id
        WHERE own.collection_id = own_id
            AND (r.source_id IS NULL OR c.collection_id = own_id)
            AND c.collection_id IS DISTINCT FROM o.source_id
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._siblings(integer) IS
    'The collections that one is compared with where all of its scheme are, and itself.';
