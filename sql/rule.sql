-- The rule: which stored page or page of the batch is the original of a page.

-- A page of a batch: what it is compared by, its previous version, and its original.
CREATE TYPE pgsimhash._decision AS (
    -- The number of the page in the batch, from 1, why it failed, if it did, and the page.
    number bigint, failure text, page_id bigint, url text, simhash bigint, fetched_at timestamptz,
    tokens integer, signature_high bigint, signature_low bigint, text_digest bigint,
    html_digest bytea, selectors integer, canonical text, etag text, last_modified text,
    -- Of an answer without a page, whether the page is gone, else unmodified; NULL for a page.
    is_gone boolean,
    -- Its settings.
    distance integer, verify boolean, scope text, window_size integer, max_age interval,
    canonical_link boolean, max_copies integer, min_tokens integer, ignore_parameters text,
    -- The present version of the URL before it, and the first one.
    version_id bigint, version_simhash bigint, version_digest bigint, first_page bigint,
    -- What tells whether its text changed, and whether the row's text is kept, here or elsewhere.
    text bigint, version_text bigint, covered boolean,
    -- Whether the version was read by other selectors, and whether its bytes are the same.
    selectors_changed boolean, is_reread boolean,
    -- The present version after it: itself, unless it is unchanged.
    is_stored boolean, present_id bigint,
    original_id bigint, original_url text, original_distance integer, reason text, copies integer,
    keep boolean
);

-- Two near simhashes: one of the batch, and one of the store or of the batch.
CREATE TYPE pgsimhash._near_pair AS (query bigint, near bigint);

-- The rule; tests/store/decide/test_rule.py has it as plain Python. A page near another one is an
-- eligible original if it is
--   1. in the compared collections (checked by the callers),
--   2. on the page's host, if the scope is the host,
--   3. not fetched longer before the page than max_age,
--   4. in the window, if there is one,
--   5. neither marked as different nor a duplicate of a page of its collection that is; pages at
--      the page's own URL are eligible anyway if that URL is only known in other collections,
--   6. not the page itself: if the page's collection knows its URL, neither at the URL nor a copy
--      that is later than its first version and equally near to the previous version; and if the
--      text of the previous version is safe and the page has another (only_text), nothing but a
--      covered version at another URL with this very text: so a change is never lost,
--   7. confirmed by the signatures, if both pages have one and the settings ask for it.
-- Not STRICT and without a search_path, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash._counts(
    distance integer, page_id bigint, url text, host text, fetched_at timestamptz, simhash bigint,
    signature_high bigint, signature_low bigint, is_copy boolean, duplicate_of_url text,
    own_url text, only_host text, since timestamptz, oldest bigint, apart text[],
    version_before bigint, first_page bigint, largest integer, own_high bigint, own_low bigint,
    covered boolean, text bigint, only_text bigint
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
            OR url <> own_url AND CASE
                WHEN only_text IS NOT NULL THEN covered AND text = only_text
                ELSE NOT is_copy
                    OR page_id < first_page
                    OR pgsimhash.hamming_distance(simhash, version_before) > largest
            END
        )
        AND pgsimhash._verified(distance, signature_high, signature_low, own_high, own_low);

-- The batch with the previous version of each page: in the store, or another page of the batch.
CREATE FUNCTION pgsimhash._with_versions(own_id integer, batch pgsimhash._decision[])
RETURNS pgsimhash._decision[]
    LANGUAGE plpgsql STABLE ${by_hash} AS $$
DECLARE
    lookup record;
    known record;
    page pgsimhash._decision;
BEGIN
    FOR lookup IN
        SELECT d.ordinality AS place, v.*
        FROM unnest(batch) WITH ORDINALITY AS d
        LEFT JOIN pgsimhash._versions_before(
            own_id, ARRAY(SELECT d.url FROM unnest(batch) AS d), batch[1].page_id
        ) AS v ON v.number = d.ordinality
        ORDER BY d.url COLLATE "C", d.ordinality
    LOOP
        -- Later pages at a URL follow the earlier ones.
        IF (page.url = batch[lookup.place].url) IS NOT TRUE THEN
            known := lookup;
        END IF;
        page := batch[lookup.place];
        page.version_id := known.page_id;
        page.version_simhash := known.simhash;
        page.version_digest := known.text_digest;
        page.version_text := coalesce(known.text_digest, known.simhash);
        page.first_page := known.first_page;
        -- An answer without a page is about the present version, if there is one.
        page.simhash := coalesce(page.simhash, known.simhash);
        page.text := coalesce(page.text_digest, page.simhash);
        -- Else it is apparently the present version again.
        page.is_stored := page.simhash IS NOT NULL AND (
            page.simhash = known.simhash
            AND coalesce(page.text_digest = known.text_digest, true)
        ) IS NOT TRUE;
        -- Without HTML, nothing was read.
        page.selectors_changed := num_nulls(page.html_digest, known.html_digest) = 0
            AND page.selectors IS DISTINCT FROM known.selectors;
        page.is_reread := page.selectors_changed AND page.html_digest = known.html_digest;
        IF page.is_stored OR page.selectors_changed THEN
            known.selectors := page.selectors;
        END IF;
        IF page.is_stored THEN
            known.page_id := page.page_id;
            known.simhash := page.simhash;
            known.text_digest := page.text_digest;
            known.html_digest := page.html_digest;
            known.first_page := coalesce(known.first_page, page.page_id);
        END IF;
        page.present_id := known.page_id;
        page.copies := 0;
        batch[lookup.place] := page;
    END LOOP;
    RETURN batch;
END
$$;

-- The newest version of each URL before a page, and the id of its first version.
CREATE FUNCTION pgsimhash._versions_before(own_id integer, urls text[], before_page bigint)
RETURNS TABLE (
    number bigint, page_id bigint, simhash bigint, text_digest bigint, html_digest bytea,
    selectors integer, first_page bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT
        u.number, v.page_id, v.simhash, v.text_digest, v.html_digest, v.selectors,
        (
            SELECT f.page_id
            FROM pgsimhash.pages AS f
            WHERE f.collection_id = own_id AND f.url BETWEEN u.url AND u.url
            ORDER BY f.url, f.page_id
            LIMIT 1
        )
    FROM unnest(urls) WITH ORDINALITY AS u (url, number)
    CROSS JOIN LATERAL (
        SELECT p.page_id, p.simhash, p.text_digest, p.html_digest, p.selectors
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id
            AND p.url BETWEEN u.url AND u.url
            AND p.page_id < before_page
        ORDER BY p.url DESC, p.page_id DESC
        LIMIT 1
    ) AS v;
END
$$;

-- The batch with the originals that marks and canonical links name. The original is at any distance
-- the earliest page marked as same that was stored before this one, else the canonical page.
CREATE FUNCTION pgsimhash._with_marked_originals(own_id integer, batch pgsimhash._decision[])
RETURNS pgsimhash._decision[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first_id constant bigint := batch[1].page_id;
    original record;
BEGIN
    IF NOT EXISTS (SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id)
        AND NOT EXISTS (
            SELECT FROM unnest(batch) AS d WHERE d.canonical_link AND d.canonical IS NOT NULL
        )
    THEN
        RETURN batch;
    END IF;
    FOR original IN
        SELECT DISTINCT ON (d.ordinality)
            d.ordinality AS number, n.reason, n.url,
            coalesce(batch[b.last_number].present_id, v.page_id) AS page_id,
            coalesce(batch[b.last_number].simhash, v.simhash) AS simhash
        FROM unnest(batch) WITH ORDINALITY AS d
        CROSS JOIN LATERAL (
            SELECT m.url, 'marked_same' AS reason
            FROM pgsimhash._marks_of(own_id, d.url) AS m
            WHERE m.same
            UNION ALL
            SELECT d.canonical, 'canonical_link'
            WHERE d.canonical_link AND NOT EXISTS (
                SELECT FROM pgsimhash._marks_of(own_id, d.url) AS m
                WHERE NOT m.same AND m.url = d.canonical
            )
        ) AS n
        LEFT JOIN LATERAL (
            SELECT min(o.ordinality) AS first_number, max(o.ordinality) AS last_number
            FROM unnest(batch) WITH ORDINALITY AS o
            WHERE o.url = n.url AND o.ordinality < d.ordinality AND o.present_id IS NOT NULL
        ) AS b ON true
        LEFT JOIN LATERAL
            pgsimhash._versions_before(own_id, ARRAY[n.url], first_id) AS v ON true
        WHERE d.is_stored
            AND coalesce(v.first_page, batch[b.first_number].page_id)
                < coalesce(d.first_page, 9223372036854775807)
        ORDER BY
            d.ordinality, n.reason DESC, coalesce(v.first_page, batch[b.first_number].page_id),
            n.url COLLATE "C"
    LOOP
        batch[original.number].reason := original.reason;
        batch[original.number].original_id := original.page_id;
        batch[original.number].original_url := original.url;
        batch[original.number].original_distance :=
            pgsimhash.hamming_distance(batch[original.number].simhash, original.simhash);
    END LOOP;
    RETURN batch;
END
$$;

-- The batch with the originals by the rule: the nearest eligible page, the earliest among equals; of
-- a change of a safe text the earliest eligible page. A text is safe if a covered version has it.
CREATE FUNCTION pgsimhash._with_originals(
    own_id integer, compared integer[], batch pgsimhash._decision[], pairs pgsimhash._near_pair[]
) RETURNS pgsimhash._decision[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    inner_pairs constant pgsimhash._near_pair[] := pgsimhash._inner_pairs(batch);
    -- None if all pages are new and near nothing: then they are kept.
    texts constant bigint[] := ARRAY(
        SELECT DISTINCT unnest(ARRAY[d.text, d.version_text])
        FROM unnest(batch) AS d
        WHERE cardinality(pairs) + cardinality(inner_pairs) > 0
            OR num_nonnulls(d.version_id, d.original_distance) > 0
    );
    safe_here constant bigint[] := pgsimhash._safe_texts(ARRAY[own_id], texts, batch[1].page_id);
    safe_globally constant bigint[] := CASE WHEN cardinality(compared) > 1
        THEN pgsimhash._safe_texts(compared, texts, batch[1].page_id) ELSE safe_here END;
    safe_texts bigint[];
    batch_texts bigint[] := '{}';
    only_text bigint;
    place bigint;
    candidate record;
    page pgsimhash._decision;
    earlier pgsimhash._decision;
BEGIN
    IF texts = '{}' THEN
        FOR number IN 1..cardinality(batch) LOOP
            batch[number].keep := batch[number].is_stored;
            batch[number].covered := batch[number].is_stored;
        END LOOP;
        RETURN batch;
    END IF;
    FOR candidate IN
        SELECT p.place, c.*
        FROM generate_series(1, cardinality(batch)) AS p (place)
        LEFT JOIN pgsimhash._candidates(
            own_id, compared, batch, pairs, inner_pairs, safe_here
        ) AS c ON c.number = p.place
        ORDER BY p.place, CASE WHEN c.only_text IS NULL THEN c.distance END, c.page_id
    LOOP
        page := batch[candidate.place];
        earlier := batch[candidate.batch_number];
        IF candidate.place IS DISTINCT FROM place THEN
            IF batch[place].covered AND batch[place].is_stored THEN
                batch_texts := batch_texts || batch[place].text;
            END IF;
            place := candidate.place;
            safe_texts := batch_texts
                || CASE WHEN page.scope = 'global' THEN safe_globally ELSE safe_here END;
            only_text := CASE WHEN page.version_text = ANY (safe_texts)
                THEN nullif(page.text, page.version_text) END;
        END IF;
        IF page.copies < page.max_copies
            AND candidate.number IS NOT NULL
            AND candidate.only_text IS NOT DISTINCT FROM only_text
            -- Parts of 5 and 6 that depend on the decision about the earlier page of the batch.
            AND (
                earlier.original_id IS NOT NULL
                    AND candidate.url <> page.url
                    AND earlier.original_url = ANY (candidate.apart)
                OR only_text IS NOT NULL AND NOT earlier.covered
                OR only_text IS NULL
                    AND earlier.original_distance IS NOT NULL
                    AND earlier.page_id > page.first_page
                    AND pgsimhash.hamming_distance(earlier.simhash, page.version_simhash)
                        <= page.distance
            ) IS NOT TRUE
        THEN
            page.copies := page.copies + 1;
            IF page.original_distance IS NULL THEN
                page.original_id := CASE WHEN candidate.is_own THEN candidate.page_id END;
                page.original_url := candidate.url;
                page.original_distance := candidate.distance;
                page.reason := CASE
                    WHEN candidate.distance > 0 THEN 'within_distance'
                    WHEN candidate.html_digest = page.html_digest THEN 'same_bytes'
                    ELSE 'same_simhash'
                END;
            END IF;
        END IF;
        page.keep := page.is_stored AND NOT page.is_reread AND CASE
            WHEN page.original_distance IS NULL
                THEN (page.version_digest = page.text_digest) IS NOT TRUE
            ELSE greatest(page.copies, (only_text IS NULL)::integer) < page.max_copies
        END;
        page.covered := page.keep OR page.text = ANY (safe_texts)
            OR page.is_reread AND page.version_text = ANY (safe_texts);
        batch[place] := page;
    END LOOP;
    RETURN batch;
END
$$;

-- The near simhashes within a batch: two within d bits have one of d + 1 blocks of bits in common.
CREATE FUNCTION pgsimhash._inner_pairs(batch pgsimhash._decision[]) RETURNS pgsimhash._near_pair[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    blocks integer;
    width integer;
BEGIN
    IF cardinality(batch) = 1 THEN
        RETURN '{}';
    END IF;
    blocks := 1 + (SELECT coalesce(max(d.distance), 0) FROM unnest(batch) AS d);
    width := least(64 / blocks, 32);
    RETURN ARRAY(
        WITH page AS MATERIALIZED (
            SELECT
                d.simhash, max(d.distance) AS distance,
                min(d.ordinality) AS first_number, max(d.ordinality) AS last_number
            FROM unnest(batch) WITH ORDINALITY AS d
            WHERE d.is_stored
            GROUP BY d.simhash
        ),
        part AS MATERIALIZED (
            SELECT
                p.*, b.place,
                p.simhash >> (b.place * width) & (1::bigint << width) - 1 AS bits
            FROM page AS p, generate_series(0, blocks - 1) AS b (place)
        )
        SELECT DISTINCT (q.simhash, b.simhash)::pgsimhash._near_pair
        FROM part AS q
        JOIN part AS b
            ON b.bits = q.bits AND b.place = q.place
            AND b.first_number < q.last_number
            AND pgsimhash.hamming_distance(b.simhash, q.simhash) <= q.distance
    );
END
$$;

-- Those of the texts that a covered version before a page has.
CREATE FUNCTION pgsimhash._safe_texts(
    collection_ids integer[], texts bigint[], before_page bigint
) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF texts = '{}' THEN
        RETURN texts;
    END IF;
    RETURN ARRAY(
        SELECT k.text
        FROM unnest(texts) AS t (text)
        CROSS JOIN unnest(collection_ids) AS c (collection_id)
        CROSS JOIN LATERAL (
            SELECT t.text
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = c.collection_id
                AND p.covered
                AND coalesce(p.text_digest, p.simhash) BETWEEN t.text AND t.text
                AND p.page_id < before_page
            ORDER BY coalesce(p.text_digest, p.simhash), p.page_id
            LIMIT 1
        ) AS k
    );
END
$$;

-- The eligible pages near each page of a batch: of the store the nearest max_copies, and of the
-- batch those before it; _with_originals decides whether these are copies or covered. Of a changed
-- text also those with this very text (only_text), of the store the earliest.
CREATE FUNCTION pgsimhash._candidates(
    own_id integer, compared integer[], batch pgsimhash._decision[],
    pairs pgsimhash._near_pair[], inner_pairs pgsimhash._near_pair[], safe_texts bigint[]
) RETURNS TABLE (
    number bigint, distance integer, page_id bigint, url text, html_digest bytea,
    batch_number bigint, apart text[], is_own boolean, only_text bigint
)
    LANGUAGE plpgsql STABLE ${by_hash} AS $$
DECLARE
    first_id constant bigint := batch[1].page_id;
    marked constant boolean := EXISTS (
        SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id
    );
BEGIN
    -- Starting the large query takes longer than the rest.
    IF cardinality(pairs) + cardinality(inner_pairs) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT
            d.*, coalesce(d.fetched_at, now()) - d.max_age AS since,
            CASE WHEN d.verify THEN d.signature_high END AS own_high,
            CASE WHEN d.verify THEN d.signature_low END AS own_low,
            CASE WHEN d.scope = 'host' THEN pgsimhash.host_of(d.url) END AS only_host,
            CASE WHEN d.scope = 'global' THEN compared ELSE ARRAY[own_id] END AS collections,
            CASE WHEN marked THEN (
                SELECT array_agg(m.url)
                FROM pgsimhash._marks_of(own_id, d.url) AS m
                WHERE NOT m.same
            ) END AS apart
        FROM unnest(batch) WITH ORDINALITY AS d
        WHERE d.is_stored
    ),
    oldest AS MATERIALIZED (
        SELECT
            w.collections, w.window_size, w.only_host,
            pgsimhash._window(w.collections, w.only_host, w.window_size, first_id) AS page_id
        FROM (SELECT DISTINCT p.collections, p.window_size, p.only_host FROM page AS p) AS w
        WHERE w.window_size IS NOT NULL
    ),
    question AS MATERIALIZED (
        SELECT p.*, o.page_id AS oldest, t.only_text
        FROM page AS p
        LEFT JOIN oldest AS o
            ON o.collections = p.collections AND o.window_size = p.window_size
            AND coalesce(o.only_host, '') = coalesce(p.only_host, '')
        -- Whether the text of the previous version is safe may depend on the batch.
        CROSS JOIN LATERAL (
            SELECT p.text AS only_text WHERE p.text <> p.version_text
            UNION ALL
            SELECT NULL
            WHERE (p.text <> p.version_text AND p.version_text = ANY (safe_texts)) IS NOT TRUE
        ) AS t
    )
    SELECT
        q.ordinality, k.distance, k.page_id, k.url, k.html_digest, NULL::bigint, q.apart,
        k.collection_id = own_id, q.only_text
    FROM question AS q
    LEFT JOIN (
        SELECT n.query, array_agg(n.near) AS simhashes FROM unnest(pairs) AS n GROUP BY n.query
    ) AS g ON g.query = q.simhash
    -- Nearest first, until enough are eligible: there may be thousands.
    CROSS JOIN LATERAL (
        SELECT p.*
        FROM (
            SELECT DISTINCT pgsimhash.hamming_distance(u, q.simhash) AS distance, u AS simhash
            FROM unnest(CASE WHEN q.only_text IS NULL THEN g.simhashes ELSE '{NULL}' END) AS u
            WHERE (pgsimhash.hamming_distance(u, q.simhash) > q.distance) IS NOT TRUE
            ORDER BY 1, 2
            OFFSET 0
        ) AS n
        CROSS JOIN LATERAL unnest(q.collections) AS o (collection_id)
        CROSS JOIN LATERAL (
            SELECT
                p.collection_id, p.page_id, p.url, p.html_digest,
                pgsimhash.hamming_distance(p.simhash, q.simhash) AS distance
            -- One of the two has no rows.
            FROM (
                (
                    SELECT s.*
                    FROM pgsimhash.pages AS s
                    WHERE s.collection_id = o.collection_id
                        AND s.simhash BETWEEN n.simhash AND n.simhash
                        AND s.page_id < first_id
                    ORDER BY s.simhash, s.page_id
                    OFFSET 0
                )
                UNION ALL
                (
                    SELECT t.*
                    FROM pgsimhash.pages AS t
                    WHERE t.collection_id = o.collection_id
                        AND t.covered
                        AND coalesce(t.text_digest, t.simhash) BETWEEN q.only_text AND q.only_text
                        AND t.page_id < first_id
                    ORDER BY coalesce(t.text_digest, t.simhash), t.page_id
                    OFFSET 0
                )
            ) AS p
            WHERE pgsimhash._counts(
                pgsimhash.hamming_distance(p.simhash, q.simhash), p.page_id, p.url, p.host,
                p.fetched_at, p.simhash, p.signature_high, p.signature_low, p.distance IS NOT NULL,
                (
                    SELECT d.url
                    FROM pgsimhash.pages AS d
                    WHERE d.collection_id = p.collection_id
                        AND d.page_id BETWEEN p.duplicate_of AND p.duplicate_of
                    ORDER BY d.page_id
                ),
                q.url, q.only_host, q.since, q.oldest, q.apart, q.version_simhash, q.first_page,
                q.distance, q.own_high, q.own_low, p.covered,
                coalesce(p.text_digest, p.simhash), q.only_text
            )
            LIMIT q.max_copies
        ) AS p
        ORDER BY n.distance
        FETCH FIRST (q.max_copies) ROWS WITH TIES
    ) AS k
    UNION ALL
    SELECT
        q.ordinality, k.distance, k.page_id, k.url, k.html_digest, k.ordinality, q.apart, true,
        q.only_text
    FROM (
        SELECT n.query, array_agg(
            p.ordinality ORDER BY pgsimhash.hamming_distance(p.simhash, n.query), p.ordinality
        ) AS numbers
        FROM unnest(inner_pairs) AS n
        JOIN page AS p ON p.simhash = n.near
        GROUP BY n.query
    ) AS g
    JOIN question AS q ON q.simhash = g.query
    CROSS JOIN LATERAL (
        SELECT n.distance, u.ordinality, p.page_id, p.url, p.html_digest
        FROM unnest(g.numbers) AS u (ordinality)
        -- The nearest come first, so a limit spares the others; a join would read the whole batch.
        CROSS JOIN LATERAL (SELECT (batch[u.ordinality]).*) AS p
        CROSS JOIN LATERAL (
            SELECT pgsimhash.hamming_distance(p.simhash, q.simhash) AS distance
        ) AS n
        WHERE u.ordinality < q.ordinality
            AND pgsimhash._counts(
                n.distance, p.page_id, p.url,
                CASE WHEN q.only_host IS NOT NULL THEN pgsimhash.host_of(p.url) END,
                coalesce(p.fetched_at, now()), p.simhash, p.signature_high, p.signature_low,
                false, NULL, q.url, q.only_host, q.since, NULL, q.apart, q.version_simhash,
                q.first_page, q.distance, q.own_high, q.own_low, true, p.text, q.only_text
            )
        LIMIT CASE WHEN q.apart IS NULL AND q.version_simhash IS NULL THEN q.max_copies END
    ) AS k;
END
$$;

-- The oldest original in the window of a host, or of all hosts if it is NULL; 0 if there are fewer.
-- Copies do not count: a hundred copies of one story displace no other.
CREATE FUNCTION pgsimhash._window(
    compared_ids integer[], of_host text, window_size integer, before_page bigint
) RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce(
        (
            SELECT n.page_id
            FROM unnest(compared_ids) AS c (collection_id)
            CROSS JOIN LATERAL (
                (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND p.host BETWEEN of_host AND of_host
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.host DESC, p.page_id DESC
                    LIMIT window_size
                )
                UNION ALL
                (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND of_host IS NULL
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.page_id DESC
                    LIMIT window_size
                )
            ) AS n
            ORDER BY n.page_id DESC
            OFFSET window_size - 1
            LIMIT 1
        ),
        0
    );
END
$$;
