-- Adding pages with SQL.

CREATE FUNCTION pgsimhash._record_status(
    url text, fetched_at timestamptz, collection text, is_gone boolean
) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
BEGIN
    IF fetched_at NOT BETWEEN '1970-01-01 00:00+00' AND now() + interval '1 day' THEN
        RAISE EXCEPTION 'the time % is before 1970 or in the future', fetched_at
            USING ERRCODE = 'PS010', HINT = 'Correct it, or omit it for now.';
    END IF;
    RETURN (
        SELECT (v.decided).kind <> 'unknown'
        FROM pgsimhash._add_batch(
            collection, pgsimhash._id_of(collection), json_build_array(json_build_object(
                'number', 1, 'url', coalesce(url, ''), 'fetched_at', fetched_at, 'is_gone', is_gone
            )), '{}', false
        ) AS v
    );
END
$$;

-- Records that a page is unmodified, such as by an answer 304; false if the URL is unknown.
CREATE FUNCTION pgsimhash.seen(
    url text, fetched_at timestamptz DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN pgsimhash._record_status(url, fetched_at, collection, false);

-- Records that a page is gone, by an answer 404 or 410; false if the URL is unknown.
CREATE FUNCTION pgsimhash.gone(
    url text, fetched_at timestamptz DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN pgsimhash._record_status(url, fetched_at, collection, true);

-- add_page for several pages in order, as one batch of a run of start_run; without one, several pages
-- are a run. In a dry run, nothing is stored or locked. A text digest is any hash of a page's words: of
-- two versions with one simhash, it tells whether the text changed.
CREATE FUNCTION pgsimhash.add_pages(
    urls text[], simhashes bigint[], fetched_at timestamptz[] DEFAULT NULL,
    dry_run boolean DEFAULT false, run_id bigint DEFAULT NULL, text_digests bigint[] DEFAULT NULL,
    collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.verdict
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    own_run constant bigint := CASE
        WHEN run_id IS NULL AND NOT dry_run AND cardinality(urls) > 1 THEN pgsimhash._draw_run()
    END;
    pages json;
BEGIN
    PERFORM pgsimhash._check_runs(collection, ARRAY[run_id]) WHERE run_id IS NOT NULL;
    IF num_nulls(urls, simhashes) > 0
        OR greatest(array_ndims(urls), array_ndims(simhashes), array_ndims(fetched_at),
            array_ndims(text_digests)) > 1
        OR cardinality(urls) <> cardinality(simhashes)
        OR cardinality(urls) <> cardinality(fetched_at)
        OR cardinality(urls) <> cardinality(text_digests)
        OR array_position(simhashes, NULL) IS NOT NULL
        OR array_position(urls, NULL) IS NOT NULL
    THEN
        RAISE EXCEPTION 'each page needs a URL and a simhash'
            USING ERRCODE = 'PS010', HINT = 'Give arrays of one length, without NULL.';
    END IF;
    SELECT coalesce(json_agg(p ORDER BY p.number), '[]') INTO pages
    FROM (
        -- The same checks as check_url in pages/urls.py and check_time in pages/values.py. Clocks of
        -- other machines may be ahead.
        SELECT p.number, p.url, p.simhash, p.fetched_at, p.text_digest, CASE
            WHEN octet_length(p.url) NOT BETWEEN 1 AND 2048
                OR p.url !~ '^(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ff][Ii][Ll][Ee]:)'
                OR p.url !~ '^[Ff]' AND pgsimhash.host_of(p.url) IS NULL
                OR p.url ~ ('[\u0001- \u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f'
                    '\u205f-\u206f\u3000\ufeff\ufff9-\ufffb]')
                THEN 'invalid_url'
            WHEN p.fetched_at NOT BETWEEN '1970-01-01 00:00+00' AND now() + interval '1 day'
                THEN 'unreadable'
        END AS failure
        FROM unnest(urls, simhashes, add_pages.fetched_at, text_digests) WITH ORDINALITY
            AS p (url, simhash, fetched_at, text_digest, number)
    ) AS p;
    RETURN QUERY
    SELECT (v.decided).*
    FROM pgsimhash._add_batch(
        collection, own_id, pages, '{}', dry_run, coalesce(run_id, own_run), 'SQL'
    ) AS v
    ORDER BY v.number;
    PERFORM pgsimhash._end_runs(own_id, ARRAY[own_run]) WHERE own_run IS NOT NULL;
END
$$;

-- Decides whether a page is known, and stores it; returns the verdict.
--
-- Decides like the package about single pages with given simhashes.
CREATE FUNCTION pgsimhash.add_page(
    url text, simhash bigint, fetched_at timestamptz DEFAULT NULL, run_id bigint DEFAULT NULL,
    collection text DEFAULT 'default'
) RETURNS pgsimhash.verdict
    LANGUAGE sql VOLATILE
    RETURN (
        SELECT v
        FROM pgsimhash.add_pages(
            ARRAY[url], ARRAY[simhash], ARRAY[fetched_at], false, run_id, collection => collection
        ) AS v
    );

-- The verdicts of add_pages, in a dry run.
CREATE FUNCTION pgsimhash.decide_pages(
    urls text[], simhashes bigint[], fetched_at timestamptz[] DEFAULT NULL,
    collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.verdict
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT * FROM pgsimhash.add_pages(urls, simhashes, fetched_at, true, collection => collection);
$$;
