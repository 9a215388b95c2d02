-- Pages that come by SQL.

-- As the package decides about pages that are added with their simhashes, one by one.
CREATE FUNCTION pgsimhash.add_page(
    url text, simhash bigint, collection text DEFAULT 'default',
    fetched_at timestamptz DEFAULT NULL
) RETURNS pgsimhash.verdict
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made pgsimhash.verdict;
BEGIN
    SELECT v.url, v.verdict, v.reason, v.distance, v.duplicate_of, v.keep, v.page_id INTO made
    FROM pgsimhash.add_pages(
        ARRAY[url], ARRAY[simhash], collection, ARRAY[fetched_at]
    ) AS v;
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_page(text, bigint, text, timestamptz) IS
    'Decides whether a page is known, and stores it; returns the verdict.';

CREATE FUNCTION pgsimhash.add_pages(
    urls text[], simhashes bigint[], collection text DEFAULT 'default',
    fetched_at timestamptz[] DEFAULT NULL
) RETURNS SETOF pgsimhash.verdict
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted integer := pgsimhash._id_of(collection);
    run constant bigint := nextval(pg_get_serial_sequence('pgsimhash.runs', 'run_id'));
    made pgsimhash.verdict;
    page record;
BEGIN
    IF num_nulls(urls, simhashes) > 0
        OR greatest(array_ndims(urls), array_ndims(simhashes), array_ndims(fetched_at)) > 1
        OR cardinality(urls) <> cardinality(simhashes)
        OR cardinality(urls) <> cardinality(fetched_at)
        OR array_position(simhashes, NULL) IS NOT NULL
        OR array_position(urls, NULL) IS NOT NULL
    THEN
        RAISE EXCEPTION 'each page has a URL and a simhash'
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give two arrays of one length, without NULL.';
    END IF;
    -- All at once and in one order, so that of two writers none waits for one that waits for it.
    PERFORM pgsimhash._lock_collections(pgsimhash._siblings(wanted))
    FROM pgsimhash._settings_for(wanted, urls) AS s
    WHERE s.scope = 'global';
    wanted := pgsimhash._lock_collection(collection);
    FOR page IN
        SELECT u.url, u.simhash, u.fetched_at
        FROM unnest(urls, simhashes, fetched_at) WITH ORDINALITY
            AS u (url, simhash, fetched_at, number)
        ORDER BY u.number
    LOOP
        made := pgsimhash._add_page(wanted, page.url, page.simhash, page.fetched_at, run);
        PERFORM pgsimhash._count_batch(
            wanted, run, 'SQL', 1, (made.verdict = 'new')::integer,
            (made.verdict IN ('identical', 'near'))::integer, (made.verdict = 'updated')::integer,
            (made.verdict = 'unchanged')::integer, o.page_id, o.page_id
        )
        FROM (
            SELECT CASE WHEN made.verdict <> 'unchanged' THEN made.page_id END AS page_id
        ) AS o
        WHERE made.verdict <> 'failed';
        RETURN NEXT made;
    END LOOP;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_pages(text[], bigint[], text, timestamptz[]) IS
    'add_page for each of some pages, in their order.';

-- Internal: for the functions above and for the package, and may change with any release.

-- One page, under the lock of the collections that it is compared with. What decide in
-- pgsimhash/store/decisions.py and verdicts.py say of a page without a text, a sketch and a
-- rel=canonical.
CREATE FUNCTION pgsimhash._add_page(
    own_id integer, url text, simhash bigint, fetched_at timestamptz, run bigint
) RETURNS pgsimhash.verdict
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    own_url constant text := _add_page.url;
    sought constant bigint := _add_page.simhash;
    fetched constant timestamptz := coalesce(_add_page.fetched_at, now());
    every_page constant bigint := 9223372036854775807;
    own_host constant text := pgsimhash.host_of(own_url);
    settings record;
    compared integer[];
    version record;
    nearest record;
    original record;
    made pgsimhash.verdict;
BEGIN
    made.url := own_url;
    made.keep := false;
    IF octet_length(own_url) NOT BETWEEN 1 AND 2048
        OR own_url !~ '^(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ff][Ii][Ll][Ee]:)'
        OR own_url !~ '^[Ff]' AND own_host IS NULL
        OR own_url ~ ('[\u0001- \u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f'
            '\u205f-\u206f\u3000\ufeff\ufff9-\ufffb]')
    THEN
        made.verdict := 'failed';
        made.reason := 'invalid_url';
        RETURN made;
    END IF;
    -- Another machine's clock may be ahead; see pgsimhash/times.py.
    IF fetched NOT BETWEEN '1970-01-01 00:00+00' AND now() + interval '1 day' THEN
        made.verdict := 'failed';
        made.reason := 'invalid_time';
        RETURN made;
    END IF;
    SELECT
        coalesce(s.distance, c.default_distance)::integer AS distance,
        coalesce(s.scope, 'collection') AS scope,
        s.newest, s.max_age,
        coalesce(s.keep_first, 1) AS keep_first
    INTO settings
    FROM pgsimhash.collections AS c
    LEFT JOIN pgsimhash._settings_for(own_id, ARRAY[own_url]) AS s ON true
    WHERE c.collection_id = own_id;
    compared := CASE settings.scope
        WHEN 'global' THEN pgsimhash._siblings(own_id)
        ELSE ARRAY[own_id]
    END;
    SELECT k.page_id, k.simhash, k.first_page, k.same INTO version
    FROM pgsimhash._known_pages(own_id, every_page, ARRAY[own_url]) AS k
    WHERE k.url = own_url;
    IF version.simhash = sought THEN
        PERFORM pgsimhash._see_pages(own_id, ARRAY[version.page_id], ARRAY[_add_page.fetched_at]);
        made.verdict := 'unchanged';
        made.reason := 'unchanged';
        made.distance := 0;
        made.page_id := version.page_id;
        RETURN made;
    END IF;
    SELECT n.page_id, n.url, n.distance, n.copies, NULL::text AS reason INTO nearest
    FROM pgsimhash._nearest(
        own_id, compared, every_page, ARRAY[sought], ARRAY[NULL::bigint], ARRAY[NULL::bigint],
        CASE WHEN settings.scope = 'host' THEN ARRAY[own_host] END,
        CASE WHEN settings.max_age IS NOT NULL THEN ARRAY[fetched - settings.max_age] END,
        CASE WHEN settings.newest IS NOT NULL THEN ARRAY(
            SELECT pgsimhash._window(
                compared, CASE WHEN settings.scope = 'host' THEN own_host END, settings.newest,
                every_page
            )
        ) END,
        ARRAY[settings.keep_first], ARRAY[own_url], ARRAY[version.simhash],
        ARRAY[version.first_page], settings.distance
    ) AS n;
    SELECT k.page_id, k.url, k.simhash INTO original
    FROM pgsimhash._known_pages(own_id, every_page, version.same) AS k
    WHERE k.url = ANY (version.same)
        AND k.page_id IS NOT NULL
        AND (version.first_page IS NULL OR k.first_page < version.first_page)
    ORDER BY k.first_page, k.url COLLATE "C"
    LIMIT 1;
    IF original.page_id IS NOT NULL THEN
        SELECT
            original.page_id, original.url,
            pgsimhash.hamming_distance(sought, original.simhash) AS distance,
            coalesce(nearest.copies, 1) AS copies, 'marked_same' AS reason
        INTO nearest;
    END IF;
    made.page_id := nextval(pg_get_serial_sequence('pgsimhash.pages', 'page_id'));
    made.distance := nearest.distance;
    made.duplicate_of := nearest.url;
    IF nearest.distance IS NOT NULL THEN
        made.verdict := CASE WHEN nearest.distance <= 3 THEN 'identical' ELSE 'near' END;
        made.reason := coalesce(
            nearest.reason,
            CASE WHEN nearest.distance > 0 THEN 'within_distance' ELSE 'same_simhash' END
        );
        made.keep := nearest.copies < settings.keep_first;
    ELSIF version.page_id IS NOT NULL THEN
        made.verdict := 'updated';
        made.reason := 'changed';
        made.distance := pgsimhash.hamming_distance(sought, version.simhash);
        made.keep := true;
    ELSE
        made.verdict := 'new';
        made.reason := 'first_seen';
        made.keep := true;
    END IF;
    INSERT INTO pgsimhash.pages (
        collection_id, page_id, url, simhash, fetched_at, run_id, duplicate_of, distance
    )
    VALUES (own_id, made.page_id, own_url, sought, fetched, run, nearest.page_id, nearest.distance);
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash._add_page(integer, text, bigint, timestamptz, bigint) IS
    'Decides whether a page is known, and stores it, under the locks that this takes.';

-- Whoever inserts pages, they are found: their simhashes come along. Until the commit nobody deletes
-- their collection.
CREATE FUNCTION pgsimhash._put_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own record;
    name text;
BEGIN
    FOR own IN
        SELECT i.collection_id, array_agg(i.simhash) AS simhashes
        FROM inserted AS i
        GROUP BY i.collection_id
        ORDER BY i.collection_id
    LOOP
        IF NOT pgsimhash._is_locked(own.collection_id) THEN
            SELECT c.name INTO name
            FROM pgsimhash.collections AS c
            WHERE c.collection_id = own.collection_id;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'there is no collection with number %', own.collection_id
                    USING ERRCODE = 'foreign_key_violation',
                    HINT = 'Take the number from pgsimhash.collections.';
            END IF;
            PERFORM pgsimhash._hold_collection(name);
            -- Ids were drawn while others wrote, and may be below theirs.
            PERFORM pgsimhash._note_load(own.collection_id);
        END IF;
        PERFORM pgsimhash._put_simhashes(own.collection_id, own.simhashes, false);
    END LOOP;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION pgsimhash._put_inserted() IS
    'Puts the simhashes of pages that were inserted into the tables that lookups go through.';

CREATE TRIGGER put_simhashes
    AFTER INSERT ON pgsimhash.pages
    REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION pgsimhash._put_inserted();
