-- Rows belong into the table of their collection's layout, where lookups look. While a
-- collection changes its layout, what is written to the present table goes to the next one too.
CREATE FUNCTION pgsimhash.simhashes_inserted() RETURNS trigger
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

CREATE FUNCTION pgsimhash.simhashes_deleted() RETURNS trigger
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

CREATE FUNCTION pgsimhash.simhashes_updated() RETURNS trigger
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
