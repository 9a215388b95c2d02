-- Marks of two pages, which override their simhashes.

-- Marks the pages at two URLs as the same or different, at any distance, and decides again.
--
-- It replaces an earlier mark, unless it contradicts others: those of the URLs that marks join to the
-- two, directly or indirectly.
CREATE FUNCTION pgsimhash.mark(
    a text, b text, same boolean, collection text DEFAULT 'default'
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 2);
    low constant text := least(a COLLATE "C", b COLLATE "C");
    high constant text := greatest(a COLLATE "C", b COLLATE "C");
    unknown text;
    against record;
BEGIN
    IF num_nulls(a, b, same) > 0 THEN
        RAISE EXCEPTION 'a mark needs two URLs, and whether their pages are the same'
            USING ERRCODE = 'PS010', HINT = 'Give both URLs, and true or false.';
    END IF;
    SELECT u INTO unknown
    FROM unnest(ARRAY[a, b]) AS u
    WHERE NOT EXISTS (
        SELECT FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id AND p.url COLLATE "default" = u
    );
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'collection "%" has no page at %', collection, unknown
            USING ERRCODE = 'PS020', HINT = 'Ingest the page first, or correct the URL.';
    ELSIF a = b THEN
        RAISE EXCEPTION 'a mark needs two different URLs, and both are %', a
            USING ERRCODE = 'PS010', HINT = 'Give another URL.';
    END IF;
    DELETE FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_a COLLATE "default" = low AND m.url_b = high;
    WITH RECURSIVE joined (mark_end, url) AS (
        SELECT u, u FROM unnest(ARRAY[a, b]) AS u
        UNION
        SELECT j.mark_end, m.url
        FROM joined AS j
        CROSS JOIN LATERAL pgsimhash._marks_of(own_id, j.url) AS m
        WHERE m.same
    )
    SELECT m.url_a, m.url_b INTO against
    FROM joined AS x
    JOIN joined AS y ON x.mark_end = a AND y.mark_end = b
    JOIN pgsimhash.marks AS m
        ON m.collection_id = own_id AND NOT m.same
        AND m.url_a IN (x.url, y.url) AND m.url_b IN (x.url, y.url)
    WHERE mark.same
    UNION ALL
    SELECT a, b FROM joined AS j WHERE NOT mark.same AND j.mark_end = a AND j.url = b
    LIMIT 1;
    IF against.url_a IS NOT NULL THEN
        RAISE EXCEPTION 'other marks say that % and % are %',
            against.url_a, against.url_b, CASE WHEN same THEN 'different' ELSE 'the same' END
            USING ERRCODE = 'PS015', HINT = 'Remove one of these marks first (unmark, --remove).';
    END IF;
    INSERT INTO pgsimhash.marks (collection_id, url_a, url_b, same) VALUES (own_id, low, high, same);
    PERFORM pgsimhash._decide_again(collection, own_id, a, b, same);
END
$$;

-- Removes the mark of two URLs, and decides again; returns whether there was one.
CREATE FUNCTION pgsimhash.unmark(a text, b text, collection text DEFAULT 'default')
RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(unmark.collection, 2);
BEGIN
    DELETE FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id
        AND m.url_a = least(a COLLATE "C", b COLLATE "C") COLLATE "default"
        AND m.url_b = greatest(a COLLATE "C", b COLLATE "C");
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pgsimhash._decide_again(unmark.collection, own_id, a, b, NULL);
    RETURN true;
END
$$;

-- By the rule and the policies, as if the versions arrived now: after "same" those of the URL that
-- was stored later, after "different" those that duplicate the other page or a duplicate of it, and
-- without a mark also originals. Copies of these versions still point to them.
CREATE FUNCTION pgsimhash._decide_again(
    collection text, own_id integer, a text, b text, same boolean
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    later constant text := (
        SELECT p.url
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id AND p.url COLLATE "default" IN (a, b)
        GROUP BY p.url
        ORDER BY min(p.page_id) DESC
        LIMIT 1
    );
    page record;
    answer record;
BEGIN
    FOR page IN
        SELECT
            1 AS number, p.page_id, p.url, p.simhash, p.fetched_at, p.signature_high,
            p.signature_low, p.text_digest, p.html_digest,
            CASE WHEN p.canonical_on_site THEN p.canonical_url END AS canonical
        FROM pgsimhash.pages AS p
        LEFT JOIN pgsimhash.pages AS o
            ON o.collection_id = own_id AND o.page_id = p.duplicate_of
        LEFT JOIN pgsimhash.pages AS d
            ON d.collection_id = own_id AND d.page_id = o.duplicate_of
        WHERE p.collection_id = own_id AND p.url COLLATE "default" IN (a, b)
            AND CASE
                WHEN same THEN p.url = later
                WHEN NOT same THEN CASE p.url WHEN a THEN b ELSE a END IN (o.url, d.url)
                ELSE o.url IS NULL OR o.url IN (a, b)
            END
        ORDER BY p.page_id
    LOOP
        SELECT (v.decided).* INTO answer
        FROM pgsimhash._add_batch(collection, own_id, json_build_array(page), '{}', true) AS v;
        UPDATE pgsimhash.pages AS p
        SET duplicate_of = answer.original_page_id,
            distance = CASE WHEN answer.kind IN ('duplicate', 'near') THEN answer.distance END
        WHERE p.collection_id = own_id AND p.page_id = page.page_id
            AND answer.kind <> 'unchanged';
    END LOOP;
END
$$;

-- The marks of a URL, with the other URLs.
CREATE FUNCTION pgsimhash._marks_of(own_id integer, about text)
RETURNS TABLE (mark_id bigint, url text, same boolean)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT m.mark_id, m.url_b, m.same
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_a COLLATE "default" = about
    UNION ALL
    SELECT m.mark_id, m.url_a, m.same
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_b COLLATE "default" = about;
END
$$;

CREATE FUNCTION pgsimhash._marks(own_id integer)
    RETURNS TABLE (a text, b text, same boolean, marked_at timestamptz)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.url_a, m.url_b, m.same, m.marked_at
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id
    ORDER BY m.mark_id;
$$;
