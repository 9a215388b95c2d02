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
        PERFORM pgsimhash._lock_collections(present);
        locked := present;
    END LOOP;
    PERFORM pgsimhash._name_for(old_name, 'simhashes');
    IF coalesce(new_name, '') = '' THEN
        RAISE EXCEPTION 'a collection has a name'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give one that is not empty.';
    ELSIF old_name = new_name THEN
        RETURN;
    ELSIF swap THEN
        PERFORM pgsimhash._name_for(new_name, 'simhashes');
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

-- Internal: for the functions above and for the package, and may change with any release.

-- The functions of the default layout hand over to those of another by this.
CREATE FUNCTION pgsimhash._name_for(collection text, name text) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    found constant text := (
        SELECT _name_for.name || l.suffix
        FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.layout
        WHERE c.name = collection
    );
BEGIN
    IF found IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'undefined_object',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist',
            HINT = 'SELECT name FROM pgsimhash.collections lists the ones that do.';
    END IF;
    RETURN format('pgsimhash.%I', found);
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

-- The first key is "pgsh" in ASCII: it keeps this package's locks apart from an application's.
-- All lock in the same order, so that none waits for one that waits for it.
CREATE FUNCTION pgsimhash._lock_collections(collection_ids integer[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM pgsimhash._check_isolation();
    PERFORM pg_advisory_xact_lock(1885827944, c.collection_id)
    FROM (SELECT u.collection_id FROM unnest(collection_ids) AS u (collection_id) ORDER BY 1) AS c;
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_collections(integer[]) IS
    'Waits until nobody else changes the pages of collections, and holds them until the commit.';

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
