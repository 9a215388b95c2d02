-- PostgreSQL has bit_count for bytea and bit only.
CREATE FUNCTION pgsimhash.bit_count(bits bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count(bits::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.bit_count(bigint) IS 'How many of the 64 bits are set.';

CREATE FUNCTION pgsimhash.hamming_distance(a bigint, b bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count((a # b)::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.hamming_distance(bigint, bigint) IS
    'In how many of the 64 bits two simhashes differ.';

CREATE FUNCTION pgsimhash.similarity(a bigint, b bigint) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN 1 - pgsimhash.hamming_distance(a, b) / 64.0::double precision;

COMMENT ON FUNCTION pgsimhash.similarity(bigint, bigint) IS
    'The share of equal bits of two simhashes, from 0 to 1.';

CREATE FUNCTION pgsimhash.level_distance(level text) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE level
% for name, distance in level_distances.items():
        WHEN '${name}' THEN ${distance}
% endfor
    END;

COMMENT ON FUNCTION pgsimhash.level_distance(text) IS
    'The largest distance at a level of similarity: close (.98) or loose (.90).';

-- The eight octets of a simhash, the highest first, in RFC 4648's base32 without padding.
CREATE FUNCTION pgsimhash.to_base32(simhash bigint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        SELECT string_agg(
            substr('abcdefghijklmnopqrstuvwxyz234567', 1 + (
                CASE WHEN place = 12 THEN simhash << 1 ELSE simhash >> 59 - 5 * place END & 31
            )::integer, 1),
            '' ORDER BY place
        )
        FROM generate_series(0, 12) AS place;
    END;

COMMENT ON FUNCTION pgsimhash.to_base32(bigint) IS
    'The eight octets of a simhash as 13 digits of base32.';

CREATE FUNCTION pgsimhash.from_base32(digits text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF digits !~ '^[a-zA-Z2-7]{12}[aAcCeEgGiIkKmMoOqQsSuUwWyY246](===)?$' THEN
        RAISE EXCEPTION '"%" is not base32 of eight octets', digits
            USING ERRCODE = 'invalid_text_representation',
            HINT = 'Write 13 digits of a-z and 2-7, the last one of acegikmoqsuwy246.';
    END IF;
    RETURN (
        SELECT bit_or(
            CASE WHEN place = 12 THEN value >> 1 ELSE value << 59 - 5 * place END
        )
        FROM generate_series(0, 12) AS place
        CROSS JOIN LATERAL (
            SELECT strpos(
                'abcdefghijklmnopqrstuvwxyz234567', lower(substr(digits, place + 1, 1))
            )::bigint - 1 AS value
        ) AS digit
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.from_base32(text) IS
    'The simhash that to_base32 wrote, in either case; raises an error for any other text.';

CREATE FUNCTION pgsimhash.sketch_distance(
    a_high bigint, a_low bigint, b_high bigint, b_low bigint
) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count((a_high # b_high)::bit(64))::integer
        + pg_catalog.bit_count((a_low # b_low)::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.sketch_distance(bigint, bigint, bigint, bigint) IS
    'In how many of the 128 bits two sketches differ; copies as a rule in 20 or less.';

-- Every mask of width bits with at most radius bits set. Two bits are enough for most lookups:
-- layouts keep those masks as constants.
CREATE FUNCTION pgsimhash.masks(width integer, radius integer) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        WITH RECURSIVE masks (mask, below, bits) AS (
            SELECT 0::bigint, width, 0
            UNION ALL
            SELECT mask | (1::bigint << bit), bit, bits + 1
            FROM masks CROSS JOIN LATERAL generate_series(0, below - 1) AS bit
            WHERE bits < radius
        )
        SELECT coalesce(array_agg(mask), '{}') FROM masks WHERE radius >= 0;
    END;

COMMENT ON FUNCTION pgsimhash.masks(integer, integer) IS
    'Every mask of the lowest width bits with at most radius bits set.';

-- The functions of the default layout hand over to those of another by this.
CREATE FUNCTION pgsimhash.name_for(collection text, name text) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    found constant text := (
        SELECT name_for.name || l.suffix
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

COMMENT ON FUNCTION pgsimhash.name_for(text, text) IS
    'What a table or function is called for the layout of a collection.';

CREATE FUNCTION pgsimhash.check_lookup(max_distance integer, layout text, nulls boolean)
RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    largest constant integer := (
        SELECT l.largest_distance FROM pgsimhash.layouts AS l WHERE l.name = layout
    );
BEGIN
    IF max_distance IS NULL OR max_distance NOT BETWEEN 0 AND largest THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'max_distance ' || coalesce(max_distance::text, 'NULL')
                || ' is not one that layout ' || layout || ' answers',
            HINT = 'Ask for a distance from 0 to ' || largest || '.';
    END IF;
    IF nulls THEN
        RAISE EXCEPTION 'a query simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Leave it out of the lookup.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash.check_lookup(integer, text, boolean) IS
    'Raises an error if a distance is not one that the layout answers, or a query is NULL.';

-- Under one snapshot for the whole transaction, what another writer committed while we waited for
-- a lock, or to which layout the collection moved, would stay unseen.
CREATE FUNCTION pgsimhash.check_isolation() RETURNS void
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

COMMENT ON FUNCTION pgsimhash.check_isolation() IS
    'Raises an error if statements of the transaction do not see what others have committed.';

-- The first key is "pgsh" in ASCII: it keeps this package's locks apart from an application's.
-- All lock in the same order, so that none waits for one that waits for it.
CREATE FUNCTION pgsimhash.lock_collections(collection_ids integer[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM pgsimhash.check_isolation();
    PERFORM pg_advisory_xact_lock(1885827944, c.collection_id)
    FROM (SELECT u.collection_id FROM unnest(collection_ids) AS u (collection_id) ORDER BY 1) AS c;
END
$$;

COMMENT ON FUNCTION pgsimhash.lock_collections(integer[]) IS
    'Waits until nobody else changes the pages of collections, and holds them until the commit.';

-- The functions below find the table of the collection's layout at every call, so that they are
-- right while a collection changes its layout.
CREATE FUNCTION pgsimhash.add_simhashes(collection text, simhashes bigint[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    added bigint;
BEGIN
    PERFORM pgsimhash.check_isolation();
    -- Each once, for a row is updated once at most; in the order of the first index, so that of
    -- two that add the same none waits for one that waits for it. xmax tells a new row.
    EXECUTE format(
        'WITH added AS ('
        'INSERT INTO %s AS o (collection_id, simhash) '
        'SELECT c.collection_id, s.simhash '
        'FROM pgsimhash.collections AS c CROSS JOIN ('
        'SELECT u FROM unnest($2) AS u GROUP BY u ORDER BY u < 0, u'
        ') AS s (simhash) '
        'WHERE c.name = $1 '
        'ON CONFLICT (prefix_1, simhash) DO UPDATE SET bare = true WHERE NOT o.bare '
        'RETURNING o.xmax = 0 AS is_new'
        ') SELECT count(*) FROM added WHERE is_new',
        pgsimhash.name_for(collection, 'simhashes')
    ) INTO added USING collection, simhashes;
    RETURN added;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_simhashes(text, bigint[]) IS
    'Adds simhashes without pages to a collection and returns how many it did not have.';

-- Called by writers, under the lock of the collection.
CREATE FUNCTION pgsimhash.add_simhashes_of_pages(collection text, simhashes bigint[])
RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO %s (collection_id, simhash, bare) '
        'SELECT c.collection_id, s.simhash, false '
        'FROM pgsimhash.collections AS c CROSS JOIN unnest($2) AS s (simhash) '
        'WHERE c.name = $1 '
        'ON CONFLICT DO NOTHING',
        pgsimhash.name_for(collection, 'simhashes')
    ) USING collection, simhashes;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_simhashes_of_pages(text, bigint[]) IS
    'Adds simhashes of pages to a collection, which go with the last page that has them.';

CREATE FUNCTION pgsimhash.forget_simhashes(
    collection text, simhashes bigint[], bare boolean DEFAULT true
) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    forgotten bigint;
BEGIN
    PERFORM pgsimhash.lock_collections(
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
        pgsimhash.name_for(collection, 'simhashes'),
        pgsimhash.name_for(collection, 'prefix')
    ) USING collection, simhashes, bare;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION pgsimhash.forget_simhashes(text, bigint[], boolean) IS
    'Removes those of the simhashes that no page of the collection has, or of these only what '
    'came with a page; returns how many.';

-- One value of eight bytes a simhash: five times as fast as COPY, which sends a message a row.
CREATE FUNCTION pgsimhash.simhash_slice(collection text, number integer, slices integer)
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
        'ON s.prefix_1 >= (c.collection_id::bigint << ${collection_shift})'
        ' + (($2::bigint << l.prefix_bits) / $3) '
        'AND s.prefix_1 < (c.collection_id::bigint << ${collection_shift})'
        ' + ((($2 + 1)::bigint << l.prefix_bits) / $3) '
        'WHERE c.name = $1',
        pgsimhash.name_for(collection, 'simhashes')
    ) INTO slice USING collection, number, slices;
    RETURN slice;
END
$$;

COMMENT ON FUNCTION pgsimhash.simhash_slice(text, integer, integer) IS
    'Slice number 0, 1, ... of a collection''s simhashes: eight bytes each, high byte first.';

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
        pgsimhash.name_for(collection, 'simhashes')
    ) INTO counted USING collection;
    RETURN counted;
END
$$;

COMMENT ON FUNCTION pgsimhash.count_simhashes(text) IS
    'How many distinct simhashes a collection has.';

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
        PERFORM pgsimhash.lock_collections(present);
        locked := present;
    END LOOP;
    PERFORM pgsimhash.name_for(old_name, 'simhashes');
    IF coalesce(new_name, '') = '' THEN
        RAISE EXCEPTION 'a collection has a name'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give one that is not empty.';
    ELSIF old_name = new_name THEN
        RETURN;
    ELSIF swap THEN
        PERFORM pgsimhash.name_for(new_name, 'simhashes');
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
