-- Writes to the tables of simhashes, and the times when pages were seen.

CREATE FUNCTION pgsimhash.add_simhashes(collection text, simhashes bigint[]) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection, 1);
    added bigint;
BEGIN
    IF EXISTS (SELECT FROM unnest(simhashes) AS u WHERE u IS NULL) THEN
        RAISE EXCEPTION 'a simhash is NULL'
            USING ERRCODE = 'PS012', HINT = 'Omit it.';
    END IF;
    added := pgsimhash._put_simhashes(wanted, simhashes, true);
    PERFORM pgsimhash._advance_epoch(wanted);
    RETURN added;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_simhashes(text, bigint[]) IS
    'Adds standalone simhashes to a collection and returns how many were new.';

-- Tells caches that simhashes were added, to any collection if it is NULL; see the table.
CREATE FUNCTION pgsimhash._advance_epoch(own_id integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO pgsimhash.cache_epochs (collection_id) VALUES (own_id);
    -- Merges the rows now and then. Under an older snapshot this would fail after changes of
    -- others.
    IF random() < 0.02 AND current_setting('transaction_isolation') = 'read committed' THEN
        WITH gone AS (
            DELETE FROM pgsimhash.cache_epochs AS l
            WHERE l.ctid = ANY (ARRAY(SELECT o.ctid FROM pgsimhash.cache_epochs AS o FOR UPDATE SKIP LOCKED))
            RETURNING l.collection_id, l.epoch
        )
        INSERT INTO pgsimhash.cache_epochs (collection_id, epoch)
        SELECT g.collection_id, sum(g.epoch)::bigint FROM gone AS g GROUP BY g.collection_id;
    END IF;
END
$$;

-- Advances the epoch after an INSERT of simhashes, unless the surrounding function does.
CREATE FUNCTION pgsimhash._note_inserted() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgsimhash._advance_epoch(NULL);
    RETURN NULL;
END
$$;

-- Citus runs triggers on the node of the shard, which does not know this session's settings. So the
-- tables of a schema that Citus keeps have no triggers, and only these functions insert into them.
CREATE FUNCTION pgsimhash._is_distributed() RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer boolean := false;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS ('
            'SELECT FROM pg_catalog.pg_dist_schema AS s '
            'JOIN pg_catalog.pg_class AS c ON c.relnamespace = s.schemaid '
            'WHERE c.oid = ''pgsimhash.pages''::regclass)'
        INTO answer;
    END IF;
    RETURN answer;
END
$$;

-- Each simhash once, because a row can be updated only once, and in the order of the first index,
-- so that two sessions that add the same ones do not wait for each other. xmax identifies new rows.
CREATE FUNCTION pgsimhash._put_simhashes(own_id integer, simhashes bigint[], standalone boolean)
RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_table constant text := 'simhashes' || pgsimhash._suffix_of(own_id);
    added bigint;
BEGIN
    PERFORM set_config('simhashes.noted', 'yes', true);
    IF own_table = 'simhashes' AND NOT standalone THEN
        -- The default layout needs no dynamic statement, which would be planned each time.
        INSERT INTO pgsimhash.simhashes (collection_id, simhash, standalone)
        SELECT own_id, s.simhash, false
        FROM (SELECT u FROM unnest(simhashes) AS u GROUP BY u ORDER BY u < 0, u) AS s (simhash)
        ON CONFLICT ON CONSTRAINT simhashes_pkey DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
    ELSE
        EXECUTE format(
            'WITH added AS ('
            'INSERT INTO pgsimhash.%1$I AS o (collection_id, simhash, standalone) '
            'SELECT $1, s.simhash, $3 FROM ('
            'SELECT u FROM unnest($2) AS u GROUP BY u ORDER BY u < 0, u'
            ') AS s (simhash) '
            'ON CONFLICT ON CONSTRAINT %2$I DO %3$s RETURNING o.xmax = 0 AS is_new'
            ') SELECT count(*) FROM added WHERE is_new',
            own_table, own_table || '_pkey',
            CASE WHEN standalone THEN 'UPDATE SET standalone = true WHERE NOT o.standalone'
                ELSE 'NOTHING' END
        ) INTO added USING own_id, simhashes, standalone;
    END IF;
    PERFORM set_config('simhashes.noted', 'no', true);
    RETURN added;
END
$$;

-- No index has a column that changes, so only the first time writes to indexes.
CREATE FUNCTION pgsimhash._see_pages(
    own_id integer, page_ids bigint[], seen_at timestamptz[]
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO pgsimhash.last_seen AS s (collection_id, page_id, seen_at)
    SELECT own_id, u.page_id, max(coalesce(u.seen_at, now()))
    FROM unnest(page_ids, _see_pages.seen_at) AS u (page_id, seen_at)
    GROUP BY u.page_id
    ORDER BY u.page_id
    ON CONFLICT (collection_id, page_id) DO UPDATE SET seen_at = excluded.seen_at
    WHERE s.seen_at < excluded.seen_at;
END
$$;
