-- Reads of pages and collections, and small writes, that the package calls.

CREATE FUNCTION pgsimhash.status(of_collection text DEFAULT NULL) RETURNS TABLE (
    collection text, scheme text, layout text, default_distance smallint, normalize_urls boolean,
    pages bigint, urls bigint, duplicates bigint, duplicate_bytes bigint, simhashes bigint,
    estimated boolean, schema_bytes bigint, last_write timestamptz, last_write_age interval
)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        c.name, c.scheme, pgsimhash.layout(), c.default_distance, c.normalize_urls, p.pages, p.urls,
        p.duplicates, p.duplicate_bytes, p.simhashes, p.estimated, b.schema_bytes, w.last_write,
        -- least() and greatest() ignore NULL.
        CASE
            WHEN w.last_write IS NOT NULL THEN greatest(now() - w.last_write, interval '0')
        END
    FROM pgsimhash.collections AS c
    CROSS JOIN LATERAL pgsimhash._count_collection(c.collection_id) AS p
    CROSS JOIN pgsimhash._schema_bytes() AS b (schema_bytes)
    CROSS JOIN LATERAL (
        SELECT greatest(p.last_fetched, p.last_seen, (
            SELECT max(r.finished_at) FROM pgsimhash.runs AS r
            WHERE r.collection_id = c.collection_id
        )) AS last_write
    ) AS w
    WHERE of_collection IS NULL OR c.name = of_collection
    ORDER BY c.name;
END
$$;

COMMENT ON FUNCTION pgsimhash.status(text) IS
    'The figures of every collection, or of one; those of more than 100,000 pages are estimated.';

-- Limits how long the transaction waits for locks, and how long it may idle: a writer that stops
-- within a transaction of the store is terminated, because others wait for its locks.
CREATE FUNCTION pgsimhash._bound_waits(lock_timeout text, otherwise text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM
        set_config(
            'lock_timeout',
            coalesce(lock_timeout, nullif(current_setting('lock_timeout'), '0'), otherwise), true
        ),
        set_config(
            'idle_in_transaction_session_timeout',
            coalesce(
                nullif(current_setting('idle_in_transaction_session_timeout'), '0'), otherwise
            ),
            true
        );
END
$$;

CREATE FUNCTION pgsimhash._bound_statements(statement_timeout text) RETURNS text
    LANGUAGE sql VOLATILE
    RETURN set_config('statement_timeout', _bound_statements.statement_timeout, true);

-- Deletes a collection; returns the number of versions of pages.
CREATE FUNCTION pgsimhash._delete_collection(collection_id integer) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own_id constant integer := _delete_collection.collection_id;
    deleted bigint;
BEGIN
    DELETE FROM pgsimhash.last_seen WHERE collection_id = own_id;
    DELETE FROM pgsimhash.clusters WHERE collection_id = own_id;
    DELETE FROM pgsimhash.pages WHERE collection_id = own_id;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    DELETE FROM pgsimhash.runs WHERE collection_id = own_id;
    DELETE FROM pgsimhash.sources WHERE collection_id = own_id;
    DELETE FROM pgsimhash.marks WHERE collection_id = own_id;
    DELETE FROM pgsimhash.policies WHERE collection_id = own_id;
    DELETE FROM pgsimhash.collections WHERE collection_id = own_id;
    RETURN deleted;
END
$$;

CREATE FUNCTION pgsimhash._collection(collection text) RETURNS TABLE (
    collection_id integer, name text, scheme text, layout text, default_distance smallint,
    keep_markdown boolean, normalize_urls boolean
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        c.collection_id, c.name, c.scheme, pgsimhash.layout(), c.default_distance, c.keep_markdown,
        c.normalize_urls
    FROM pgsimhash.collections AS c
    WHERE c.name = _collection.collection;
END
$$;

CREATE FUNCTION pgsimhash._collection_there(collection_id integer) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (
        SELECT FROM pgsimhash.collections AS c
        WHERE c.collection_id = _collection_there.collection_id
    );
END
$$;

CREATE FUNCTION pgsimhash._create_collection(
    name text, scheme text, distance integer, keep_markdown boolean, normalize_urls boolean
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO pgsimhash.collections (
        name, scheme, default_distance, keep_markdown, normalize_urls
    )
    VALUES (
        _create_collection.name, _create_collection.scheme, _create_collection.distance,
        _create_collection.keep_markdown, _create_collection.normalize_urls
    )
    ON CONFLICT DO NOTHING;
END
$$;

CREATE FUNCTION pgsimhash._collection_names() RETURNS SETOF text
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT name FROM pgsimhash.collections ORDER BY name;
END
$$;

CREATE FUNCTION pgsimhash._set_collection(
    collection_id integer, distance integer, keep_markdown boolean
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE pgsimhash.collections
    SET default_distance = coalesce(_set_collection.distance::smallint, default_distance),
        keep_markdown = coalesce(_set_collection.keep_markdown, keep_markdown)
    WHERE collection_id = _set_collection.collection_id;
END
$$;

CREATE FUNCTION pgsimhash._end_rebuild() RETURNS text
    LANGUAGE sql VOLATILE
    RETURN set_config('simhashes.rebuilt', '', true);

CREATE FUNCTION pgsimhash._count_versions(source_id integer) RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT count(*) FROM pgsimhash.pages WHERE collection_id = _count_versions.source_id
    );
END
$$;

-- Versions of pages, in order of arrival, up to a number of bytes.
CREATE FUNCTION pgsimhash._next_versions(
    source_id integer, after_page bigint, batch integer, bytes bigint, with_markdown boolean
) RETURNS TABLE (
    page_id bigint, url text, simhash bigint, fetched_at timestamptz, title text,
    canonical_url text, language text, features integer, html_bytes integer, structure bigint,
    signature_high bigint, signature_low bigint, markdown text, tokens integer, html_digest bytea,
    text_digest bigint, run_id bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
        p.html_bytes, p.structure, p.signature_high, p.signature_low,
        CASE WHEN _next_versions.with_markdown THEN p.markdown END AS markdown,
        p.tokens, p.html_digest, p.text_digest, p.run_id
    FROM (
        SELECT *, sum(octet_length(n.markdown)) OVER (
            ORDER BY n.page_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS bytes_before
        FROM (
            SELECT *
            FROM pgsimhash.pages
            WHERE collection_id = _next_versions.source_id AND page_id > _next_versions.after_page
            ORDER BY page_id
            LIMIT _next_versions.batch
        ) AS n
    ) AS p
    WHERE coalesce(p.bytes_before < _next_versions.bytes, true)
    ORDER BY p.page_id;
END
$$;

-- The present version of a page; a row of NULLs if the page is unknown, and no row if
-- the collection does not exist.
CREATE FUNCTION pgsimhash._page(collection text, of_url text) RETURNS TABLE (
    url text, simhash bigint, fetched_at timestamptz, title text, canonical_url text, language text,
    features integer, html_bytes integer, duplicate_of text, distance smallint, structure bigint,
    markdown text, seen_at timestamptz, run_id bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
        p.html_bytes, original.url AS duplicate_of, p.distance, p.structure, p.markdown,
        greatest(p.fetched_at, s.seen_at) AS seen_at, p.run_id
    FROM pgsimhash.collections AS c
    LEFT JOIN LATERAL (
        SELECT n.*
        FROM pgsimhash.pages AS n
        WHERE n.collection_id = c.collection_id AND n.url = _page.of_url
        ORDER BY n.page_id DESC
        LIMIT 1
    ) AS p ON true
    LEFT JOIN pgsimhash.pages AS original
        ON original.collection_id = p.collection_id AND original.page_id = p.duplicate_of
    LEFT JOIN pgsimhash.last_seen AS s
        ON s.collection_id = p.collection_id AND s.page_id = p.page_id
    WHERE c.name = _page.collection;
END
$$;

-- A sample of the present versions, reproducible by the seed.
CREATE FUNCTION pgsimhash._sample(collection_id integer, size integer, seed bigint)
    RETURNS TABLE (url text, simhash bigint, title text)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT p.url, p.simhash, p.title
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = _sample.collection_id
        AND NOT EXISTS (
            SELECT FROM pgsimhash.pages AS newer
            WHERE newer.collection_id = p.collection_id
                AND newer.url = p.url
                AND newer.page_id > p.page_id
        )
    ORDER BY hashint8extended(p.page_id, _sample.seed), p.page_id
    LIMIT _sample.size;
END
$$;

-- The fingerprints of the present versions of some pages.
CREATE FUNCTION pgsimhash._known_fingerprints(collection_id integer, urls text[]) RETURNS TABLE (
    url text, simhash bigint, signature_high bigint, signature_low bigint, title text
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT q.url, p.simhash, p.signature_high, p.signature_low, p.title
    FROM unnest(_known_fingerprints.urls) AS q (url)
    CROSS JOIN LATERAL (
        SELECT n.*
        FROM pgsimhash.pages AS n
        WHERE n.collection_id = _known_fingerprints.collection_id AND n.url = q.url
        ORDER BY n.collection_id DESC, n.url DESC, n.page_id DESC
        LIMIT 1
    ) AS p;
END
$$;

-- All versions of a page in order of arrival.
CREATE FUNCTION pgsimhash._versions(
    collection_id integer, of_url text, with_markdown boolean
) RETURNS TABLE (
    url text, simhash bigint, fetched_at timestamptz, seen_at timestamptz, title text,
    structure bigint, html_bytes integer, markdown text, text_digest bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT p.url, p.simhash, p.fetched_at, greatest(p.fetched_at, s.seen_at) AS seen_at, p.title,
        p.structure, p.html_bytes,
        CASE WHEN _versions.with_markdown THEN p.markdown END AS markdown, p.text_digest
    FROM pgsimhash.pages AS p
    LEFT JOIN pgsimhash.last_seen AS s
        ON s.collection_id = p.collection_id AND s.page_id = p.page_id
    WHERE p.collection_id = _versions.collection_id AND p.url = _versions.of_url
    ORDER BY p.page_id;
END
$$;

-- The present version of a page, with the values for an explanation.
CREATE FUNCTION pgsimhash._explained_page(collection_id integer, of_url text) RETURNS TABLE (
    url text, simhash bigint, fetched_at timestamptz, title text, structure bigint,
    signature_high bigint, signature_low bigint, markdown text
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT url, simhash, fetched_at, title, structure, signature_high, signature_low, markdown
    FROM pgsimhash.pages
    WHERE collection_id = _explained_page.collection_id AND url = _explained_page.of_url
    ORDER BY page_id DESC
    LIMIT 1;
END
$$;

-- The present versions of all pages that share a cluster, or else a simhash, with another page. The
-- clusters come as arrays, because a standby has no temporary tables.
CREATE FUNCTION pgsimhash._clusters(
    collection_id integer, simhashes bigint[], clusters bigint[]
) RETURNS TABLE (
    cluster bigint, page_id bigint, url text, simhash bigint, fetched_at timestamptz, title text,
    features integer
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        member.cluster, member.page_id, member.url, member.simhash, member.fetched_at,
        member.title, member.features
    FROM (
        SELECT
            p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.features,
            coalesce(c.cluster, p.simhash) AS cluster,
            count(*) OVER (PARTITION BY coalesce(c.cluster, p.simhash)) AS pages
        FROM pgsimhash.pages AS p
        LEFT JOIN ROWS FROM (
            unnest(_clusters.simhashes), unnest(_clusters.clusters)
        ) AS c (simhash, cluster) USING (simhash)
        WHERE p.collection_id = _clusters.collection_id
            AND NOT EXISTS (
                SELECT FROM pgsimhash.pages AS newer
                WHERE newer.collection_id = p.collection_id
                    AND newer.url = p.url
                    AND newer.page_id > p.page_id
            )
    ) AS member
    WHERE member.pages > 1
    ORDER BY member.cluster, member.page_id;
END
$$;

-- The first of the present versions with each simhash. BETWEEN requires an order that only one
-- index has.
CREATE FUNCTION pgsimhash._first_pages(collection_id integer, simhashes bigint[])
    RETURNS TABLE (simhash bigint, url text, title text)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT q.simhash, p.url, p.title
    FROM unnest(_first_pages.simhashes) AS q (simhash)
    CROSS JOIN LATERAL (
        SELECT k.url, k.title
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = _first_pages.collection_id
            AND k.simhash BETWEEN q.simhash AND q.simhash
            AND NOT EXISTS (
                SELECT FROM pgsimhash.pages AS newer
                WHERE newer.collection_id = k.collection_id
                    AND newer.url = k.url
                    AND newer.page_id > k.page_id
            )
        ORDER BY k.simhash, k.page_id
        LIMIT 1
    ) AS p;
END
$$;

CREATE FUNCTION pgsimhash._clear_clusters(collection_id integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM pgsimhash.clusters WHERE collection_id = _clear_clusters.collection_id;
END
$$;

-- Without pages that were deleted meanwhile.
CREATE FUNCTION pgsimhash._save_clusters(
    collection_id integer, page_ids bigint[], clusters bigint[], canonical boolean[]
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO pgsimhash.clusters (collection_id, page_id, cluster, is_canonical)
    SELECT p.collection_id, p.page_id, c.cluster, c.is_canonical
    FROM ROWS FROM (
        unnest(_save_clusters.page_ids), unnest(_save_clusters.clusters),
        unnest(_save_clusters.canonical)
    ) AS c (page_id, cluster, is_canonical)
    JOIN pgsimhash.pages AS p
        ON p.collection_id = _save_clusters.collection_id AND p.page_id = c.page_id;
END
$$;

-- The versions that duplicated a known page when they arrived, by distance.
CREATE FUNCTION pgsimhash._report_distances(collection_id integer)
    RETURNS TABLE (distance smallint, pages bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT distance, count(*) AS pages
    FROM pgsimhash.pages
    WHERE collection_id = _report_distances.collection_id AND distance IS NOT NULL
    GROUP BY distance
    ORDER BY distance;
END
$$;

-- The hosts with the most duplicates; all_hosts counts those with any page.
CREATE FUNCTION pgsimhash._report_hosts(collection_id integer, "limit" bigint) RETURNS TABLE (
    host text, pages bigint, duplicates bigint, duplicate_bytes bigint, all_hosts bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        coalesce(host, '') AS host,
        count(*) AS pages,
        count(*) FILTER (WHERE distance IS NOT NULL) AS duplicates,
        coalesce(sum(html_bytes) FILTER (WHERE distance IS NOT NULL), 0)::bigint
            AS duplicate_bytes,
        count(*) OVER () AS all_hosts
    FROM pgsimhash.pages
    WHERE collection_id = _report_hosts.collection_id
    GROUP BY host
    ORDER BY duplicates DESC, pages DESC, host
    LIMIT _report_hosts."limit";
END
$$;

-- The pages whose content changed by the most bits, summed over versions; all_urls
-- counts those with more than one version.
CREATE FUNCTION pgsimhash._report_changed(collection_id integer, "limit" bigint)
    RETURNS TABLE (url text, moved bigint, versions bigint, all_urls bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        url, sum(moved)::bigint AS moved, count(*) + 1 AS versions,
        count(*) OVER () AS all_urls
    FROM (
        SELECT url, pgsimhash.hamming_distance(simhash, lag(simhash) OVER history) AS moved
        FROM pgsimhash.pages
        WHERE collection_id = _report_changed.collection_id
        WINDOW history AS (PARTITION BY url ORDER BY page_id)
    ) AS steps
    WHERE moved IS NOT NULL
    GROUP BY url
    ORDER BY 2 DESC, url
    LIMIT _report_changed."limit";
END
$$;

-- The beginning of the Markdown of some pages.
CREATE FUNCTION pgsimhash._report_texts(collection_id integer, page_ids bigint[], chars integer)
    RETURNS TABLE (page_id bigint, markdown text)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT page_id, left(markdown, _report_texts.chars) AS markdown
    FROM pgsimhash.pages
    WHERE collection_id = _report_texts.collection_id AND page_id = ANY (_report_texts.page_ids)
        AND markdown IS NOT NULL;
END
$$;
