-- Adding pages with SQL.

-- Decides like the package about single pages with given simhashes.
CREATE FUNCTION pgsimhash.add_page(
    url text, simhash bigint, collection text DEFAULT 'default',
    fetched_at timestamptz DEFAULT NULL
) RETURNS pgsimhash.verdict
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT v
        FROM pgsimhash.add_pages(ARRAY[url], ARRAY[simhash], collection, ARRAY[fetched_at]) AS v
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.add_page(text, bigint, text, timestamptz) IS
    'Decides whether a page is known, and stores it; returns the verdict.';

CREATE FUNCTION pgsimhash.add_pages(
    urls text[], simhashes bigint[], collection text DEFAULT 'default',
    fetched_at timestamptz[] DEFAULT NULL
) RETURNS SETOF pgsimhash.verdict
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    failures constant text[] := ARRAY(
        SELECT pgsimhash._failure_of(p.url, p.fetched_at)
        FROM unnest(urls, fetched_at) WITH ORDINALITY AS p (url, fetched_at, number)
        ORDER BY p.number
    );
    page record;
BEGIN
    IF num_nulls(urls, simhashes) > 0
        OR greatest(array_ndims(urls), array_ndims(simhashes), array_ndims(fetched_at)) > 1
        OR cardinality(urls) <> cardinality(simhashes)
        OR cardinality(urls) <> cardinality(fetched_at)
        OR array_position(simhashes, NULL) IS NOT NULL
        OR array_position(urls, NULL) IS NOT NULL
    THEN
        RAISE EXCEPTION 'each page needs a URL and a simhash'
            USING ERRCODE = 'PS010',
            HINT = 'Give two arrays of one length, without NULL.';
    END IF;
    SELECT
        array_agg(p.url ORDER BY p.number) AS urls,
        array_agg(p.simhash ORDER BY p.number) AS simhashes,
        array_agg(p.fetched_at ORDER BY p.number) AS fetched_at,
        array_agg(coalesce(s.distance, c.default_distance)::integer ORDER BY p.number) AS distances,
        array_agg(coalesce(s.scope, 'collection') ORDER BY p.number) AS scopes,
        array_agg(s.window_size ORDER BY p.number) AS window_sizes,
        array_agg(coalesce(p.fetched_at, now()) - s.max_age ORDER BY p.number) AS since,
        array_agg(coalesce(s.max_copies, 1) ORDER BY p.number) AS max_copies
    INTO page
    FROM unnest(urls, simhashes, fetched_at, failures) WITH ORDINALITY
        AS p (url, simhash, fetched_at, failure, number)
    JOIN pgsimhash.collections AS c ON c.collection_id = own_id
    LEFT JOIN (
        SELECT n.number, s.*
        FROM pgsimhash._settings_for(own_id, urls) AS s
        CROSS JOIN LATERAL unnest(s.url_numbers) AS n (number)
    ) AS s USING (number)
    WHERE p.failure IS NULL;
    RETURN QUERY
    SELECT
        p.url, coalesce(v.verdict, 'failed'), coalesce(v.reason, p.failure), v.distance,
        v.duplicate_of, coalesce(v.keep, false), v.page_id, v.original_page_id
    FROM (
        SELECT u.url, u.failure, u.number, count(*) FILTER (WHERE u.failure IS NULL) OVER numbered
            AS place
        FROM unnest(urls, failures) WITH ORDINALITY AS u (url, failure, number)
        WINDOW numbered AS (ORDER BY u.number)
    ) AS p
    LEFT JOIN pgsimhash._add_batch(
        collection, own_id, true, true,
        array_fill(
            CASE WHEN cardinality(urls) > 1
                THEN nextval(pg_get_serial_sequence('pgsimhash.runs', 'run_id')) END,
            ARRAY[coalesce(cardinality(page.urls), 0)]
        ), 'SQL', NULL, page.urls, page.simhashes, page.fetched_at, NULL, NULL, NULL, NULL, NULL,
        page.distances, NULL, page.scopes, page.window_sizes, page.since, page.max_copies
    ) WITH ORDINALITY AS v ON v.ordinality = p.place AND p.failure IS NULL
    ORDER BY p.number;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_pages(text[], bigint[], text, timestamptz[]) IS
    'add_page for several pages in order, as one batch; several pages are a run.';

-- The same checks as check_url in pages/urls.py and check_time in pages/times.py. Clocks of other
-- machines may be ahead.
CREATE FUNCTION pgsimhash._failure_of(url text, fetched_at timestamptz) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN CASE
        WHEN octet_length(url) NOT BETWEEN 1 AND 2048
            OR url !~ '^(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ff][Ii][Ll][Ee]:)'
            OR url !~ '^[Ff]' AND pgsimhash.host_of(url) IS NULL
            OR url ~ ('[\u0001- \u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f'
                '\u205f-\u206f\u3000\ufeff\ufff9-\ufffb]')
            THEN 'invalid_url'
        WHEN fetched_at NOT BETWEEN '1970-01-01 00:00+00' AND now() + interval '1 day'
            THEN 'unreadable'
    END;

-- Adds the simhashes of inserted pages, whoever inserts them, so that lookups find them. Nobody
-- deletes their collection before the commit.
CREATE FUNCTION pgsimhash._put_inserted() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
                RAISE EXCEPTION 'there is no collection with id %', own.collection_id
                    USING ERRCODE = 'PS001',
                    HINT = 'Use an id from pgsimhash.collections.';
            END IF;
            -- A rebuild gives the name to another collection; these rows would be lost with the old.
            IF pgsimhash._lock_collection(name, 1) <> own.collection_id THEN
                RAISE EXCEPTION 'collection "%" was replaced during the call', name
                    USING ERRCODE = 'PS003', HINT = 'Try again.';
            END IF;
            -- Other writers were active when the ids were assigned, so these may be below theirs.
            PERFORM pgsimhash._advance_epoch(own.collection_id);
        END IF;
        PERFORM pgsimhash._put_simhashes(own.collection_id, own.simhashes, false);
    END LOOP;
    RETURN NULL;
END
$$;

DO $$
BEGIN
    IF NOT pgsimhash._is_distributed() THEN
        CREATE TRIGGER put_simhashes
            AFTER INSERT ON pgsimhash.pages
            REFERENCING NEW TABLE AS inserted
            FOR EACH STATEMENT
            WHEN (current_setting('simhashes.noted', true) IS DISTINCT FROM 'yes')
            EXECUTE FUNCTION pgsimhash._put_inserted();
    END IF;
END
$$;
