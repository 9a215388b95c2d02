-- The rule for originals, and the function that decides and stores by it.

-- The rule; tests/store/decide/test_rule.py has it as plain Python. A page near another one is an
-- eligible original if it is
--   1. in the compared collections (checked by the callers),
--   2. on the page's host, if the scope is the host,
--   3. not fetched longer before the page than max_age,
--   4. in the window, if there is one,
--   5. neither marked as different nor a duplicate of a page of its collection that is; pages at
--      the page's own URL are eligible anyway if that URL is only known in other collections,
--   6. not the page itself: if the page's collection knows its URL, neither at the URL nor a copy
--      that is later than its first version and equally near to the previous version,
--   7. confirmed by the signatures beyond the trusted distance, if both pages have one.
-- Not STRICT and without a search_path, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash._counts(
    distance integer, page_id bigint, url text, host text, fetched_at timestamptz, simhash bigint,
    signature_high bigint, signature_low bigint, is_copy boolean, duplicate_of_url text,
    own_url text, only_host text, since timestamptz, oldest bigint, apart text[],
    version_before bigint, first_page bigint, largest integer, own_high bigint, own_low bigint
) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN distance <= largest
        AND (only_host IS NULL OR host = only_host)
        AND (since IS NULL OR fetched_at >= since)
        AND (oldest IS NULL OR page_id >= oldest)
        AND (
            apart IS NULL
            OR url = own_url
            OR url <> ALL (apart) AND (duplicate_of_url = ANY (apart)) IS NOT TRUE
        )
        AND (
            version_before IS NULL
            OR url <> own_url AND (
                NOT is_copy
                OR page_id < first_page
                OR pgsimhash.hamming_distance(simhash, version_before) > largest
            )
        )
        AND pgsimhash._verified(distance, signature_high, signature_low, own_high, own_low);

-- The stored simhashes near those of a batch, each with its own distance; the compared collections,
-- and the newest page of each at that moment.
CREATE FUNCTION pgsimhash._near_pairs(
    own_id integer, simhashes bigint[], distances integer[], scopes text[],
    OUT compared integer[], OUT near_to bigint[], OUT near_simhashes bigint[],
    OUT newest_pages bigint[]
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked record;
    more record;
BEGIN
    compared := CASE
        WHEN 'global' = ANY (scopes) THEN pgsimhash._siblings(own_id)
        ELSE ARRAY[own_id]
    END;
    newest_pages := pgsimhash._newest_pages(compared);
    FOR asked IN
        SELECT u.distance, u.scope = 'global' AS everywhere, array_agg(DISTINCT u.simhash) AS queries
        FROM unnest(simhashes, distances, scopes) AS u (simhash, distance, scope)
        GROUP BY 1, 2
    LOOP
        SELECT array_agg(asked.queries[m.query_number]) AS queries, array_agg(m.simhash) AS simhashes
        INTO more
        FROM pgsimhash.collections AS c
        CROSS JOIN LATERAL pgsimhash.near_duplicates(asked.queries, asked.distance, c.name) AS m
        WHERE c.collection_id = own_id
            OR asked.everywhere AND c.collection_id = ANY (compared);
        near_to := near_to || more.queries;
        near_simhashes := near_simhashes || more.simhashes;
    END LOOP;
END
$$;

-- The newest page of each collection, 0 if it has none.
CREATE FUNCTION pgsimhash._newest_pages(collection_ids integer[]) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT array_agg(
            coalesce(
                (
                    SELECT max(p.page_id)
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                ),
                0
            )
            ORDER BY c.number
        )
        FROM unnest(collection_ids) WITH ORDINALITY AS c (collection_id, number)
    );
END
$$;

-- Page ids are assigned under the lock, so ids above the newest one are later. From here on nobody
-- else adds pages to the compared collections. The order requires the primary key, because a generic
-- plan expects a third of the collection and would read the narrowest index from end to end.
CREATE FUNCTION pgsimhash._lock_compared(
    collection text, own_id integer, compared integer[], INOUT newest_pages bigint[],
    OUT arrived bigint[]
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
    AS $$
BEGIN
    PERFORM pgsimhash._lock_collections(compared);
    IF pgsimhash._id_of(collection) <> own_id THEN
        RAISE EXCEPTION 'collection "%" was replaced during the call', collection
            USING ERRCODE = 'PS003', HINT = 'Try again.';
    END IF;
    arrived := ARRAY(
        SELECT DISTINCT a.simhash
        FROM unnest(compared, newest_pages) AS c (collection_id, newest_page)
        CROSS JOIN LATERAL (
            SELECT p.simhash
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = c.collection_id AND p.page_id > coalesce(c.newest_page, 0)
            ORDER BY p.collection_id, p.page_id
            OFFSET 0
        ) AS a
    );
    IF cardinality(arrived) > 0 THEN
        newest_pages := pgsimhash._newest_pages(compared);
    END IF;
END
$$;

-- The oldest original in the window of a host, or of all hosts if it is NULL; 0 if there are fewer.
-- Copies do not count: a hundred copies of one story displace no other.
CREATE FUNCTION pgsimhash._window(
    compared_ids integer[], of_host text, window_size integer, before_page bigint
) RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT coalesce(
            (
                SELECT n.page_id
                FROM unnest(compared_ids) AS c (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND p.host BETWEEN of_host AND of_host
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.host DESC, p.page_id DESC
                    LIMIT window_size
                ) AS n
                ORDER BY n.page_id DESC
                OFFSET window_size - 1
                LIMIT 1
            ),
            (
                SELECT n.page_id
                FROM unnest(compared_ids) AS c (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND of_host IS NULL
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.page_id DESC
                    LIMIT window_size
                ) AS n
                ORDER BY n.page_id DESC
                OFFSET window_size - 1
                LIMIT 1
            ),
            0
        )
    );
END
$$;

-- The newest version of a URL before a page, and the id of the first version.
CREATE FUNCTION pgsimhash._version_before(own_id integer, of_url text, before_page bigint)
RETURNS TABLE (page_id bigint, simhash bigint, text_digest bigint, first_page bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        p.page_id, p.simhash, p.text_digest,
        (
            SELECT f.page_id
            FROM pgsimhash.pages AS f
            WHERE f.collection_id = own_id AND f.url = of_url
            ORDER BY f.collection_id, f.url, f.page_id
            LIMIT 1
        )
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = own_id AND p.url = of_url AND p.page_id < before_page
    ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
    LIMIT 1;
END
$$;

-- Decides about a batch in order and stores it. Each page is compared with the pages stored before
-- the batch, and with those before it in the batch.
--
-- Near simhashes are looked up here, before the lock, or are given: near_to has the query of each
-- of near_simhashes, some of which may be deleted, in the compared collections and up to
-- newest_pages. Then batch_to and batch_simhashes are the near pairs within the batch.
--
-- Without remember nothing is locked or stored. With page_ids, pages are evaluated as if they had
-- arrived with these ids, nothing is locked, and each gets its own row.
--
-- Planned once, because planning takes longer than the lookup. BETWEEN requires an order that only
-- one index has: a plan made while the table is small must not use another index later.
CREATE FUNCTION pgsimhash._add_batch(
    collection text, own_id integer, remember boolean, by_policies boolean, run_ids bigint[],
    label text, page_ids bigint[],
    urls text[], simhashes bigint[], fetched_at timestamptz[], signatures_high bigint[],
    signatures_low bigint[], text_digests bigint[], html_digests bytea[], canonicals text[],
    distances integer[], verify boolean[], scopes text[], window_sizes integer[], since timestamptz[],
    max_copies integer[],
    compared integer[] DEFAULT NULL, near_to bigint[] DEFAULT NULL,
    near_simhashes bigint[] DEFAULT NULL,
    batch_to bigint[] DEFAULT NULL, batch_simhashes bigint[] DEFAULT NULL,
    newest_pages bigint[] DEFAULT NULL,
    titles text[] DEFAULT NULL, canonical_urls text[] DEFAULT NULL, languages text[] DEFAULT NULL,
    features integer[] DEFAULT NULL, tokens integer[] DEFAULT NULL,
    html_bytes integer[] DEFAULT NULL, structures bigint[] DEFAULT NULL,
    markdowns text[] DEFAULT NULL
) RETURNS TABLE (
    verdict text, reason text, distance integer, duplicate_of text, original_page_id bigint,
    keep boolean, page_id bigint, run_pages bigint, lookup_seconds double precision
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
    SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0 SET enable_nestloop = off
    AS $$
#variable_conflict use_column
DECLARE
    batch_size constant integer := cardinality(urls);
    drawn constant regclass := pg_get_serial_sequence('pgsimhash.pages', 'page_id');
    is_given constant boolean := page_ids IS NOT NULL;
    started constant timestamptz := clock_timestamp();
    looked_up timestamptz;
    arrived bigint[] := '{}';
    -- What each page is compared by.
    hosts text[];
    marked boolean;
    -- The previous version of each page: in the store, or another page of the batch.
    before_numbers integer[];
    first_numbers integer[];
    version_ids bigint[];
    version_simhashes bigint[];
    version_digests bigint[];
    first_pages bigint[];
    -- The present version afterwards: the page itself, unless it is unchanged.
    present_ids bigint[];
    present_digests bigint[];
    is_stored boolean[];
    -- Its original.
    original_ids bigint[];
    original_urls text[];
    original_distances integer[];
    reasons text[];
    copies integer[];
    earlier integer;
    candidate record;
    counted_pages bigint;
BEGIN
    IF urls IS NULL
        OR NOT by_policies AND EXISTS (
            SELECT FROM pgsimhash.policies AS p WHERE p.collection_id = own_id
        )
    THEN
        RETURN;
    END IF;
    IF near_to IS NULL THEN
        SELECT n.compared, n.near_to, n.near_simhashes, n.newest_pages
        INTO compared, near_to, near_simhashes, newest_pages
        FROM pgsimhash._near_pairs(own_id, simhashes, distances, scopes) AS n;
        near_to := coalesce(near_to, '{}');
        near_simhashes := coalesce(near_simhashes, '{}');
        IF batch_size > 1 THEN
            SELECT array_agg(p.query), array_agg(p.simhash) INTO batch_to, batch_simhashes
            FROM (
                SELECT DISTINCT q.simhash, b.simhash
                FROM unnest(simhashes, distances) WITH ORDINALITY AS q (simhash, distance, number)
                JOIN unnest(simhashes) WITH ORDINALITY AS b (simhash, number) ON b.number < q.number
                WHERE pgsimhash.hamming_distance(q.simhash, b.simhash) <= q.distance
            ) AS p (query, simhash);
        END IF;
    END IF;
    batch_to := coalesce(batch_to, '{}');
    looked_up := clock_timestamp();
    IF remember AND NOT is_given THEN
        SELECT l.newest_pages, l.arrived INTO newest_pages, arrived
        FROM pgsimhash._lock_compared(collection, own_id, compared, newest_pages) AS l;
        page_ids := ARRAY(
            SELECT nextval(drawn) FROM generate_series(1, batch_size)
        );
        -- Citus commits pages on their node first. A coordinator that stops at that moment forgets
        -- which ids it drew.
        IF page_ids[1] <= ANY (newest_pages) THEN
            PERFORM nextval(drawn)
            FROM generate_series(
                page_ids[1],
                least((SELECT max(n) FROM unnest(newest_pages) AS n), page_ids[1] + 1000000)
            );
            page_ids := ARRAY(
                SELECT nextval(drawn) FROM generate_series(1, batch_size)
            );
        END IF;
        -- Citus starts the sequences of workers above 2 ^ 48.
        IF page_ids[1] > 281474976710656 THEN
            RAISE EXCEPTION 'this node is a worker of the Citus cluster'
                USING ERRCODE = 'PS033', HINT = 'Connect to the coordinator.';
        END IF;
    ELSIF NOT is_given THEN
        -- Above all page ids.
        page_ids := ARRAY(
            SELECT 9223372036854775807 - batch_size + g FROM generate_series(1, batch_size) AS g
        );
    END IF;
    IF cardinality(arrived) > 0 THEN
        SELECT near_to || array_agg(q.simhash), near_simhashes || array_agg(a.simhash)
        INTO near_to, near_simhashes
        FROM unnest(simhashes, distances) AS q (simhash, distance)
        CROSS JOIN unnest(arrived) AS a (simhash)
        WHERE pgsimhash.hamming_distance(q.simhash, a.simhash) <= q.distance;
    END IF;
    SELECT
        array_agg(u.before_number ORDER BY u.number),
        array_agg(u.first_number ORDER BY u.number),
        array_agg(v.page_id ORDER BY u.number),
        array_agg(v.simhash ORDER BY u.number),
        array_agg(v.text_digest ORDER BY u.number),
        array_agg(v.first_page ORDER BY u.number),
        array_agg(CASE WHEN u.scope = 'host' THEN pgsimhash.host_of(u.url) END ORDER BY u.number)
    INTO
        before_numbers, first_numbers, version_ids, version_simhashes, version_digests,
        first_pages, hosts
    FROM (
        SELECT
            b.url, b.scope, b.number,
            lag(b.number) OVER same_url AS before_number,
            first_value(b.number) OVER same_url AS first_number
        FROM unnest(urls, scopes) WITH ORDINALITY AS b (url, scope, number)
        WINDOW same_url AS (PARTITION BY b.url COLLATE "C" ORDER BY b.number)
    ) AS u
    -- Like _version_before, without a call for each page.
    LEFT JOIN LATERAL (
        SELECT
            p.page_id, p.simhash, p.text_digest,
            (
                SELECT f.page_id
                FROM pgsimhash.pages AS f
                WHERE f.collection_id = own_id AND f.url = u.url
                ORDER BY f.collection_id, f.url, f.page_id
                LIMIT 1
            ) AS first_page
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id AND p.url = u.url AND p.page_id < page_ids[1]
        ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
        LIMIT 1
    ) AS v ON true;
    FOR number IN 1..batch_size LOOP
        earlier := before_numbers[number];
        IF earlier IS NOT NULL THEN
            version_ids[number] := present_ids[earlier];
            version_simhashes[number] := simhashes[earlier];
            version_digests[number] := present_digests[earlier];
            first_pages[number] := coalesce(first_pages[number], page_ids[first_numbers[number]]);
        END IF;
        -- Apparently the present version again.
        is_stored[number] := (
            version_simhashes[number] = simhashes[number]
            AND coalesce(version_digests[number] = text_digests[number], true)
        ) IS NOT TRUE;
        IF is_stored[number] THEN
            present_ids[number] := page_ids[number];
            present_digests[number] := text_digests[number];
        ELSE
            present_ids[number] := version_ids[number];
            present_digests[number] := version_digests[number];
        END IF;
    END LOOP;
    original_ids := array_fill(NULL::bigint, ARRAY[batch_size]);
    original_urls := array_fill(NULL::text, ARRAY[batch_size]);
    original_distances := array_fill(NULL::integer, ARRAY[batch_size]);
    reasons := array_fill(NULL::text, ARRAY[batch_size]);
    copies := array_fill(0, ARRAY[batch_size]);
    -- A page marked as same is the original at any distance, if it was stored before this one; of
    -- several the earliest. Otherwise the canonical page is.
    marked := EXISTS (SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id);
    IF marked OR cardinality(array_remove(canonicals, NULL)) > 0 THEN
        FOR candidate IN
            SELECT DISTINCT ON (q.number)
                q.number, n.reason, n.url,
                coalesce(present_ids[b.last_number], v.page_id) AS page_id,
                coalesce(simhashes[b.last_number], v.simhash) AS simhash
            FROM unnest(urls, canonicals, is_stored) WITH ORDINALITY
                AS q (url, canonical, is_stored, number)
            CROSS JOIN LATERAL (
                SELECT m.url, 'marked_same' AS reason
                FROM pgsimhash._marks_of(own_id, q.url) AS m
                WHERE m.same
                UNION ALL
                SELECT q.canonical, 'canonical_link'
                WHERE NOT EXISTS (
                    SELECT FROM pgsimhash._marks_of(own_id, q.url) AS m
                    WHERE NOT m.same AND m.url = q.canonical
                )
            ) AS n
            LEFT JOIN LATERAL (
                SELECT min(u.number) AS first_number, max(u.number) AS last_number
                FROM unnest(urls) WITH ORDINALITY AS u (url, number)
                WHERE u.url = n.url AND u.number < q.number
            ) AS b ON true
            LEFT JOIN LATERAL pgsimhash._version_before(own_id, n.url, page_ids[1]) AS v
                ON true
            WHERE q.is_stored
                AND coalesce(v.first_page, page_ids[b.first_number])
                    < coalesce(first_pages[q.number], 9223372036854775807)
            ORDER BY
                q.number, n.reason DESC, coalesce(v.first_page, page_ids[b.first_number]),
                n.url COLLATE "C"
        LOOP
            reasons[candidate.number] := candidate.reason;
            original_ids[candidate.number] := candidate.page_id;
            original_urls[candidate.number] := candidate.url;
            original_distances[candidate.number] := pgsimhash.hamming_distance(
                simhashes[candidate.number], candidate.simhash
            );
        END LOOP;
    END IF;
    -- Otherwise the original is the nearest eligible page, the earliest among equals, and after
    -- equally near pages a standalone simhash.
    IF cardinality(near_to) + cardinality(batch_to) > 0 THEN
        FOR candidate IN
            WITH near AS NOT MATERIALIZED (
                SELECT
                    n.query, n.simhash, pgsimhash.hamming_distance(n.query, n.simhash) AS distance
                FROM unnest(near_to, near_simhashes) AS n (query, simhash)
            ),
            page AS MATERIALIZED (
                SELECT
                    u.*, hosts[u.number] AS only_host,
                    CASE WHEN u.verify THEN u.own_high END AS signature_high,
                    CASE WHEN u.verify THEN u.own_low END AS signature_low,
                    version_simhashes[u.number] AS version_before,
                    first_pages[u.number] AS first_page,
                    CASE WHEN marked THEN (
                        SELECT array_agg(m.url)
                        FROM pgsimhash._marks_of(own_id, u.url) AS m
                        WHERE NOT m.same
                    ) END AS apart
                FROM unnest(
                    urls, simhashes, signatures_high, signatures_low, distances, verify, scopes, window_sizes,
                    since, max_copies, is_stored
                ) WITH ORDINALITY AS u (
                    url, simhash, own_high, own_low, largest, verify, scope, window_size, since,
                    max_copies, is_stored, number
                )
                WHERE u.is_stored
            ),
            oldest AS MATERIALIZED (
                SELECT
                    d.scope, d.window_size, d.only_host,
                    pgsimhash._window(
                        CASE WHEN d.scope = 'global' THEN compared ELSE ARRAY[own_id] END,
                        d.only_host, d.window_size, page_ids[1]
                    ) AS page_id
                FROM (SELECT DISTINCT p.scope, p.window_size, p.only_host FROM page AS p) AS d
                WHERE d.window_size IS NOT NULL
            ),
            question AS MATERIALIZED (
                SELECT p.*, o.page_id AS oldest
                FROM page AS p
                LEFT JOIN oldest AS o
                    ON o.scope = p.scope AND o.window_size = p.window_size
                    AND coalesce(o.only_host, '') = coalesce(p.only_host, '')
            ),
            -- The first page of the batch with each simhash, and the simhashes without a page.
            leader AS MATERIALIZED (
                SELECT p.simhash, min(p.number) AS number
                FROM page AS p
                GROUP BY p.simhash
            ),
            standalone AS MATERIALIZED (
                SELECT n.simhash, c.collection_id
                FROM (SELECT DISTINCT n.simhash FROM near AS n) AS n
                CROSS JOIN pgsimhash.collections AS c
                WHERE c.collection_id = ANY (compared)
                    AND (
                        SELECT true
                        FROM pgsimhash.pages AS p
                        WHERE p.collection_id = c.collection_id
                            AND p.simhash BETWEEN n.simhash AND n.simhash
                        ORDER BY p.simhash
                        LIMIT 1
                    ) IS NULL
                    -- A cache may contain deleted simhashes.
                    AND pgsimhash.has_near_duplicate(n.simhash, 0, c.name)
            )
            SELECT
                q.number, k.distance, k.page_id, k.url, k.html_digest, NULL::bigint AS batch_number,
                q.apart, k.collection_id = own_id AS is_own
            FROM (
                SELECT q.number, array_agg(n.simhash) AS simhashes, array_agg(n.distance) AS distances
                FROM near AS n
                JOIN question AS q ON q.simhash = n.query AND n.distance <= q.largest
                GROUP BY q.number
            ) AS g
            JOIN question AS q USING (number)
            -- Nearest first, until enough are eligible: there may be thousands.
            CROSS JOIN LATERAL (
                SELECT n.distance, p.*
                FROM (
                    SELECT DISTINCT u.distance, u.simhash
                    FROM unnest(g.simhashes, g.distances) AS u (simhash, distance)
                    ORDER BY u.distance, u.simhash
                    OFFSET 0
                ) AS n
                CROSS JOIN LATERAL unnest(
                    CASE WHEN q.scope = 'global' THEN compared ELSE ARRAY[own_id] END
                ) AS o (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.collection_id, p.page_id, p.url, p.html_digest
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = o.collection_id
                        AND p.simhash BETWEEN n.simhash AND n.simhash
                        AND p.page_id < page_ids[1]
                        AND pgsimhash._counts(
                            n.distance, p.page_id, p.url, p.host, p.fetched_at, p.simhash,
                            p.signature_high, p.signature_low, p.distance IS NOT NULL,
                            (
                                SELECT d.url
                                FROM pgsimhash.pages AS d
                                WHERE d.collection_id = p.collection_id AND d.page_id = p.duplicate_of
                            ),
                            q.url, q.only_host, q.since, q.oldest, q.apart, q.version_before,
                            q.first_page, q.largest, q.signature_high, q.signature_low
                        )
                    ORDER BY p.simhash, p.page_id
                    LIMIT q.max_copies
                ) AS p
                ORDER BY n.distance
                FETCH FIRST (q.max_copies) ROWS WITH TIES
            ) AS k
            UNION ALL
            SELECT
                q.number, k.distance, page_ids[k.number], urls[k.number], html_digests[k.number],
                k.number, q.apart, true
            FROM (
                SELECT
                    q.number, array_agg(p.number) AS numbers,
                    array_agg(pgsimhash.hamming_distance(p.simhash, q.simhash)) AS distances
                FROM unnest(batch_to, batch_simhashes) AS b (query, simhash)
                JOIN page AS p ON p.simhash = b.simhash
                JOIN question AS q
                    ON q.simhash = b.query AND p.number < q.number
                    AND pgsimhash.hamming_distance(p.simhash, q.simhash) <= q.largest
                GROUP BY q.number
            ) AS g
            JOIN question AS q USING (number)
            CROSS JOIN LATERAL (
                SELECT n.number, n.distance
                FROM (
                    SELECT u.number, u.distance
                    FROM unnest(g.numbers, g.distances) AS u (number, distance)
                    ORDER BY u.distance, u.number
                    OFFSET 0
                ) AS n
                -- The loop decides which page it duplicates.
                WHERE pgsimhash._counts(
                    n.distance, page_ids[n.number], urls[n.number],
                    CASE WHEN q.only_host IS NOT NULL THEN pgsimhash.host_of(urls[n.number]) END,
                    coalesce(fetched_at[n.number], now()), simhashes[n.number],
                    signatures_high[n.number], signatures_low[n.number], false, NULL,
                    q.url, q.only_host, q.since, NULL, q.apart, q.version_before,
                    q.first_page, q.largest, q.signature_high, q.signature_low
                )
                ORDER BY n.distance, n.number
                LIMIT CASE
                    WHEN q.apart IS NULL AND q.version_before IS NULL THEN q.max_copies
                END
            ) AS k
            UNION ALL
            SELECT q.number, n.distance, NULL, NULL, NULL, NULL, NULL, false
            FROM (
                SELECT DISTINCT n.query, n.distance, simhash, l.collection_id
                FROM near AS n
                JOIN standalone AS l USING (simhash)
            ) AS n
            JOIN question AS q ON q.simhash = n.query AND n.distance <= q.largest
            LEFT JOIN leader AS f ON f.simhash = n.simhash
            WHERE (n.collection_id = own_id OR q.scope = 'global')
                AND q.only_host IS NULL AND q.since IS NULL AND q.oldest IS NULL
                AND q.apart IS NULL
                AND (n.collection_id = own_id AND f.number < q.number) IS NOT TRUE
            ORDER BY 1, 2, 3 NULLS LAST
        LOOP
            earlier := candidate.batch_number;
            CONTINUE WHEN copies[candidate.number] >= max_copies[candidate.number]
                -- Parts of 5 and 6 that depend on whether the earlier page of the batch is a copy.
                OR original_ids[earlier] IS NOT NULL
                    AND candidate.url <> urls[candidate.number]
                    AND original_urls[earlier] = ANY (candidate.apart)
                OR original_distances[earlier] IS NOT NULL
                    AND page_ids[earlier] > first_pages[candidate.number]
                    AND pgsimhash.hamming_distance(
                        simhashes[earlier], version_simhashes[candidate.number]
                    ) <= distances[candidate.number];
            copies[candidate.number] := copies[candidate.number] + 1;
            IF original_distances[candidate.number] IS NULL THEN
                original_ids[candidate.number] := CASE WHEN candidate.is_own THEN candidate.page_id END;
                original_urls[candidate.number] := candidate.url;
                original_distances[candidate.number] := candidate.distance;
                reasons[candidate.number] := CASE
                    WHEN candidate.distance > 0 THEN 'within_distance'
                    WHEN candidate.html_digest = html_digests[candidate.number] THEN 'same_bytes'
                    ELSE 'same_simhash'
                END;
            END IF;
        END LOOP;
    END IF;
    IF remember THEN
        -- Citus cannot plan an INSERT with unknown values.
        PERFORM set_config('plan_cache_mode', 'auto', true);
    END IF;
    IF remember AND (is_given OR true = ANY (is_stored)) THEN
        -- So the trigger does not add their simhashes again.
        PERFORM set_config('simhashes.noted', 'yes', true);
        INSERT INTO pgsimhash.pages (
            collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url, language,
            features, tokens, html_bytes, html_digest, text_digest, structure, signature_high,
            signature_low, markdown, duplicate_of, distance
        )
        SELECT
            own_id, b.page_id, b.url, b.simhash, coalesce(b.fetched_at, now()), b.run_id, b.title,
            b.canonical_url, b.language, b.features, b.tokens, b.html_bytes, b.html_digest,
            b.text_digest, b.structure, b.signature_high, b.signature_low, b.markdown, b.duplicate_of,
            b.distance
        FROM unnest(
            page_ids, urls, simhashes, fetched_at, run_ids, titles, canonical_urls, languages,
            features, tokens, html_bytes, html_digests, text_digests, structures, signatures_high,
            signatures_low, markdowns, original_ids, original_distances, is_stored
        ) AS b (
            page_id, url, simhash, fetched_at, run_id, title, canonical_url, language, features,
            tokens, html_bytes, html_digest, text_digest, structure, signature_high, signature_low,
            markdown, duplicate_of, distance, is_stored
        )
        WHERE b.is_stored OR is_given;
        PERFORM pgsimhash._put_simhashes(own_id, ARRAY(
            SELECT b.simhash
            FROM unnest(simhashes, is_stored) AS b (simhash, is_stored)
            WHERE b.is_stored OR is_given
        ), false);
    END IF;
    IF remember AND NOT is_given THEN
        IF false = ANY (is_stored) THEN
            PERFORM pgsimhash._see_pages(own_id, array_agg(b.page_id), array_agg(b.fetched_at))
            FROM unnest(present_ids, fetched_at, is_stored) AS b (page_id, fetched_at, is_stored)
            WHERE NOT b.is_stored;
        END IF;
        -- Each batch writes the run's row, so a run removed by a rollback or an undo reappears with
        -- the next batch. A single page belongs to no run unless the caller started one.
        IF run_ids[1] IS NOT NULL THEN
            INSERT INTO pgsimhash.runs AS r (
                run_id, collection_id, label, pages, new, duplicates, updated, unchanged,
                first_page, last_page
            )
            SELECT
                run_ids[1], own_id, label, batch_size,
                count(*) FILTER (
                    WHERE b.is_stored AND b.distance IS NULL AND b.version_id IS NULL
                ),
                count(b.distance),
                count(*) FILTER (
                    WHERE b.is_stored AND b.distance IS NULL AND b.version_id IS NOT NULL
                ),
                count(*) FILTER (WHERE NOT b.is_stored),
                min(b.page_id) FILTER (WHERE b.is_stored),
                max(b.page_id) FILTER (WHERE b.is_stored)
            FROM unnest(present_ids, original_distances, version_ids, is_stored)
                AS b (page_id, distance, version_id, is_stored)
            ON CONFLICT (collection_id, run_id) DO UPDATE SET
                finished_at = excluded.finished_at,
                pages = r.pages + excluded.pages,
                new = r.new + excluded.new,
                duplicates = r.duplicates + excluded.duplicates,
                updated = r.updated + excluded.updated,
                unchanged = r.unchanged + excluded.unchanged,
                first_page = least(r.first_page, excluded.first_page),
                last_page = greatest(r.last_page, excluded.last_page)
            RETURNING r.pages INTO counted_pages;
        END IF;
    END IF;
    RETURN QUERY
    SELECT
        CASE
            WHEN NOT b.is_stored THEN 'unchanged'
            WHEN b.distance <= 3 THEN 'duplicate'
            WHEN b.distance > 3 THEN 'near'
            WHEN b.version_id IS NOT NULL THEN 'updated'
            ELSE 'new'
        END,
        CASE
            WHEN NOT b.is_stored THEN 'unchanged'
            WHEN b.reason IS NOT NULL THEN b.reason
            WHEN b.version_id IS NULL THEN 'first_seen'
            WHEN b.version_digest = b.text_digest THEN 'same_text'
            ELSE 'changed'
        END,
        CASE
            WHEN NOT b.is_stored THEN 0
            WHEN b.distance IS NULL AND b.version_id IS NOT NULL
                THEN pgsimhash.hamming_distance(b.simhash, b.version_simhash)
            ELSE b.distance
        END,
        b.original_url,
        -- The pages of a dry run have no ids.
        CASE
            WHEN NOT b.is_stored THEN (
                SELECT p.duplicate_of
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id AND p.page_id = b.page_id
            )
            WHEN remember OR is_given OR b.original_id < page_ids[1] THEN b.original_id
        END,
        CASE
            WHEN NOT b.is_stored THEN false
            WHEN b.distance IS NOT NULL THEN greatest(b.copies, 1) < b.max_copies
            ELSE (b.version_digest = b.text_digest) IS NOT TRUE
        END,
        CASE WHEN remember OR NOT b.is_stored THEN b.page_id END,
        counted_pages,
        extract(epoch FROM looked_up - started)::double precision
    FROM unnest(
        is_stored, original_distances, version_ids, reasons, version_digests, text_digests,
        simhashes, version_simhashes, original_urls, original_ids, copies, max_copies, present_ids
    ) WITH ORDINALITY AS b (
        is_stored, distance, version_id, reason, version_digest, text_digest, simhash,
        version_simhash, original_url, original_id, copies, max_copies, page_id, number
    )
    ORDER BY b.number;
END
$$;
