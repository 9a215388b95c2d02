-- What goes into the tables of simhashes.

-- The functions below find the table of the collection's layout at every call, so that they are
-- right while a collection changes its layout.
CREATE FUNCTION pgsimhash.add_simhashes(collection text, simhashes bigint[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    added bigint;
BEGIN
    PERFORM pgsimhash._check_isolation();
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
        pgsimhash._name_for(collection, 'simhashes')
    ) INTO added USING collection, simhashes;
    RETURN added;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_simhashes(text, bigint[]) IS
    'Adds simhashes without pages to a collection and returns how many it did not have.';

-- Internal: for the functions above and for the package, and may change with any release.

-- Called by writers, under the lock of the collection.
CREATE FUNCTION pgsimhash._add_simhashes_of_pages(collection text, simhashes bigint[])
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
        pgsimhash._name_for(collection, 'simhashes')
    ) USING collection, simhashes;
END
$$;

COMMENT ON FUNCTION pgsimhash._add_simhashes_of_pages(text, bigint[]) IS
    'Adds simhashes of pages to a collection, which go with the last page that has them.';

-- Rows belong into the table of their collection's layout, where lookups look. While a
-- collection changes its layout, what is written to the present table goes to the next one too.
CREATE FUNCTION pgsimhash._simhashes_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    here constant text := TG_ARGV[0];
    wrong record;
    place record;
BEGIN
    FOR wrong IN
        SELECT a.collection_id, c.name, l.suffix
        FROM (SELECT DISTINCT collection_id FROM added) AS a
        LEFT JOIN pgsimhash.collections AS c USING (collection_id)
        LEFT JOIN pgsimhash.layouts AS l ON l.name = c.layout
        WHERE (c.layout = here OR c.next_layout = here) IS NOT TRUE
    LOOP
        IF wrong.name IS NULL THEN
            RAISE EXCEPTION 'there is no collection with the number %', wrong.collection_id
                USING ERRCODE = 'foreign_key_violation',
                HINT = 'SELECT collection_id, name FROM pgsimhash.collections lists them.';
        END IF;
        RAISE EXCEPTION 'collection "%" has another layout than table %.%',
            wrong.name, TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'check_violation',
            HINT = format('Insert into pgsimhash.%I.', 'simhashes' || wrong.suffix);
    END LOOP;
    FOR place IN
        SELECT c.collection_id, l.suffix
        FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.next_layout
        WHERE c.layout = here
    LOOP
        EXECUTE format(
            'INSERT INTO pgsimhash.%I AS o (collection_id, simhash, bare) '
            'SELECT collection_id, simhash, bare FROM added WHERE collection_id = $1 '
            'ON CONFLICT (prefix_1, simhash) DO UPDATE SET bare = excluded.bare '
            'WHERE o.bare <> excluded.bare',
            'simhashes' || place.suffix
        ) USING place.collection_id;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE FUNCTION pgsimhash._simhashes_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    here constant text := TG_ARGV[0];
    place record;
BEGIN
    FOR place IN
        SELECT c.collection_id, l.suffix
        FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.next_layout
        WHERE c.layout = here
    LOOP
        EXECUTE format(
            'DELETE FROM pgsimhash.%I AS s USING removed AS r '
            'WHERE r.collection_id = $1 AND s.simhash = r.simhash '
            'AND s.prefix_1 = pgsimhash.%I(r.simhash, 1, $1)',
            'simhashes' || place.suffix, 'prefix' || place.suffix
        ) USING place.collection_id;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE FUNCTION pgsimhash._simhashes_updated() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE EXCEPTION 'rows of %.% are inserted and deleted, not updated',
        TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'feature_not_supported',
        HINT = 'Delete the simhash and insert the other one.';
END
$$;
