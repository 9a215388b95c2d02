-- Marks of two pages, which override their simhashes.

CREATE FUNCTION pgsimhash.mark(collection text, a text, b text, same boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection);
    unknown text;
BEGIN
    IF num_nulls(a, b, same) > 0 THEN
        RAISE EXCEPTION 'a mark needs two URLs, and whether their pages are the same'
            USING ERRCODE = 'PS010', HINT = 'Give both URLs, and true or false.';
    END IF;
    SELECT u INTO unknown
    FROM unnest(ARRAY[a, b]) AS u
    WHERE NOT EXISTS (
        SELECT FROM pgsimhash.pages AS p WHERE p.collection_id = wanted AND p.url = u
    );
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'collection "%" has no page at %', collection, unknown
            USING ERRCODE = 'PS020', HINT = 'Ingest the page first, or correct the URL.';
    ELSIF a = b THEN
        RAISE EXCEPTION 'a mark needs two different URLs, and both are %', a
            USING ERRCODE = 'PS010', HINT = 'Give another URL.';
    END IF;
    PERFORM pgsimhash._put_mark(collection, a, b, same);
END
$$;

COMMENT ON FUNCTION pgsimhash.mark(text, text, text, boolean) IS
    'Marks the pages at two URLs as the same or different, at any distance.';

CREATE FUNCTION pgsimhash.unmark(collection text, a text, b text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_id constant integer := pgsimhash._hold_collection(unmark.collection);
BEGIN
    DELETE FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id
        AND m.url_a = least(a COLLATE "C", b COLLATE "C")
        AND m.url_b = greatest(a COLLATE "C", b COLLATE "C");
    RETURN FOUND;
END
$$;

COMMENT ON FUNCTION pgsimhash.unmark(text, text, text) IS
    'Removes the mark of two URLs; returns whether there was one.';

-- Internal functions, which may change with any release.

CREATE FUNCTION pgsimhash._put_mark(collection text, a text, b text, same boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
    against record;
BEGIN
    PERFORM pgsimhash.unmark(collection, a, b);
    IF same THEN
        SELECT m.url_a, m.url_b INTO against
        FROM pgsimhash._marked_same(collection, a) AS x (url)
        CROSS JOIN pgsimhash._marked_same(collection, b) AS y (url)
        JOIN pgsimhash.marks AS m
            ON m.collection_id = wanted AND NOT m.same
            AND m.url_a = least(x.url COLLATE "C", y.url COLLATE "C")
            AND m.url_b = greatest(x.url COLLATE "C", y.url COLLATE "C")
        LIMIT 1;
    ELSE
        SELECT a AS url_a, b AS url_b INTO against
        FROM pgsimhash._marked_same(collection, a) AS x (url)
        WHERE x.url = b;
    END IF;
    IF against.url_a IS NOT NULL THEN
        RAISE EXCEPTION 'other marks say that % and % are %',
            against.url_a, against.url_b, CASE WHEN same THEN 'different' ELSE 'the same' END
            USING ERRCODE = 'PS015',
            HINT = 'Remove one of them first: pgsimhash mark --remove; pgsimhash mark lists them.';
    END IF;
    INSERT INTO pgsimhash.marks (collection_id, url_a, url_b, same)
    VALUES (
        wanted, least(a COLLATE "C", b COLLATE "C"), greatest(a COLLATE "C", b COLLATE "C"), same
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._put_mark(text, text, text, boolean) IS
    'Writes a mark, or replaces it, unless it contradicts other marks.';

CREATE FUNCTION pgsimhash._marked_same(collection text, url text) RETURNS SETOF text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE joined (url) AS (
        SELECT _marked_same.url
        UNION
        SELECT CASE m.url_a WHEN j.url THEN m.url_b ELSE m.url_a END
        FROM joined AS j
        JOIN pgsimhash.marks AS m ON m.same AND (m.url_a = j.url OR m.url_b = j.url)
        JOIN pgsimhash.collections AS c USING (collection_id)
        WHERE c.name = _marked_same.collection
    )
    SELECT j.url FROM joined AS j;
END
$$;

COMMENT ON FUNCTION pgsimhash._marked_same(text, text) IS
    'A URL, and all URLs that marks join to it, directly or indirectly.';

CREATE FUNCTION pgsimhash._marks_of(own_id integer, about text)
RETURNS TABLE (mark_id bigint, url text, same boolean)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT m.mark_id, m.url_b, m.same
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_a = about
    UNION ALL
    SELECT m.mark_id, m.url_a, m.same
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_b = about;
END
$$;

COMMENT ON FUNCTION pgsimhash._marks_of(integer, text) IS
    'The marks of a URL, with the other URLs.';
