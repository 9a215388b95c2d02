-- Lookups of pages.

-- The pages near the present version of a URL, or else near a simhash; with first_only, the first page
-- of each simhash, in any version. Only the first pages of each simhash are read, so that a limit is
-- cheap even if ten thousand pages share a simhash.
CREATE FUNCTION pgsimhash._find_pages(
    collection text, scheme text, own_url text, query bigint, own_high bigint, own_low bigint,
    distance integer, verify boolean, max_matches bigint, first_only boolean DEFAULT false
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4 ${in_order} AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection, scheme);
BEGIN
    IF own_url IS NOT NULL THEN
        SELECT p.simhash, p.signature_high, p.signature_low INTO query, own_high, own_low
        FROM ${newest own_url} AS p;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'collection "%" has no page at %', collection, left(own_url, 200)
                USING ERRCODE = 'PS020', HINT = 'Ingest the page first, or correct the URL.';
        END IF;
    END IF;
    RETURN QUERY
    SELECT p.url, m.distance, m.simhash, p.title, p.fetched_at, p.page_id, (
        SELECT s.gone_at
        FROM pgsimhash.last_seen AS s
        WHERE NOT first_only AND s.collection_id = own_id AND s.page_id = p.page_id
    )
    FROM pgsimhash.find(query, distance, collection) AS m
    CROSS JOIN LATERAL (
        SELECT k.url, k.title, k.fetched_at, k.page_id
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = own_id
            AND k.simhash BETWEEN m.simhash AND m.simhash
            AND (own_url IS NULL OR k.url <> own_url)
            AND (NOT verify OR pgsimhash._verified(
                m.distance, k.signature_high, k.signature_low, own_high, own_low
            ))
            AND (first_only OR ${present k})
        ORDER BY k.simhash, k.page_id
        LIMIT CASE WHEN first_only THEN 1 ELSE max_matches END
    ) AS p
    ORDER BY m.distance, CASE WHEN first_only THEN m.simhash END, p.page_id
    LIMIT max_matches;
END
$$;

-- Every other page within a distance of the page at a URL, by default the collection's; present
-- versions, nearest first. An error for an unknown URL.
CREATE FUNCTION pgsimhash.near_pages(
    url text, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 4 AS $$
    SELECT * FROM pgsimhash._find_pages(
        collection, NULL, coalesce(url, ''), NULL, NULL, NULL, distance, true, NULL
    );
$$;

-- The present versions within a distance of a simhash, by default the collection's, nearest first.
CREATE FUNCTION pgsimhash.near_pages(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 4 AS $$
    SELECT * FROM pgsimhash._find_pages(
        collection, NULL, NULL, simhash, NULL, NULL, distance, true, NULL
    );
$$;
