-- Reads of pages and collections, and small writes, that the package calls.

-- The figures of every collection, or of one; those of more than 100,000 pages are estimated.
CREATE FUNCTION pgsimhash.status(collection text DEFAULT NULL) RETURNS TABLE (
    name text, scheme text, layout text, default_distance smallint, normalize_urls boolean,
    pages bigint, urls bigint, duplicates bigint, duplicate_bytes bigint, simhashes bigint,
    estimated boolean, schema_bytes bigint, last_write timestamptz, last_write_age interval,
    content_missing bigint, cut_short bigint
)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant oid := 'pgsimhash'::regnamespace;
    bytes bigint;
BEGIN
    PERFORM pgsimhash._id_of(collection) WHERE collection IS NOT NULL;
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        -- On the node that keeps them, pg_class has the shards too. Sizes of tables are refused after
        -- a deletion in the same transaction.
        bytes := (
            SELECT sum(s.size)
            FROM citus_shard_sizes() AS s
            JOIN pg_dist_shard AS d ON d.shardid = s.shard_id
            JOIN pg_class AS t ON t.oid = d.logicalrelid
            WHERE t.relnamespace = home
        );
    END IF;
    bytes := coalesce(bytes, (
        SELECT sum(pg_total_relation_size(t.oid))
        FROM pg_class AS t
        WHERE t.relnamespace = home AND t.relkind = 'r'
    ));
    RETURN QUERY
    SELECT
        c.name, c.scheme, pgsimhash.layout(), c.default_distance, c.normalize_urls, p.pages, p.urls,
        p.duplicates, p.duplicate_bytes, p.simhashes, p.estimated, bytes, w.last_write,
        -- least() and greatest() ignore NULL.
        CASE
            WHEN w.last_write IS NOT NULL THEN greatest(now() - w.last_write, interval '0')
        END, coalesce(u.content_missing, 0), coalesce(u.cut_short, 0)
    FROM pgsimhash.collections AS c
    CROSS JOIN LATERAL pgsimhash._count_collection(c.collection_id) AS p
    CROSS JOIN LATERAL (
        SELECT greatest(p.last_fetched, p.last_seen, (
            SELECT max(r.finished_at) FROM pgsimhash.runs AS r
            WHERE r.collection_id = c.collection_id
        )) AS last_write
    ) AS w
    LEFT JOIN LATERAL (
        SELECT r.content_missing, r.cut_short
        FROM pgsimhash.runs AS r
        WHERE r.collection_id = c.collection_id
        ORDER BY r.run_id DESC
        LIMIT 1
    ) AS u ON true
    WHERE collection IS NULL OR c.name = collection
    ORDER BY c.name;
END
$$;

-- Up to 100,000 rows are counted. Of more, the planner's statistics say how many there are, and
-- 10,000 pages from 500 places say which share of them are duplicates, present versions and so on, and
-- when they were last seen.
CREATE FUNCTION pgsimhash._count_collection(
    own_id integer, OUT pages bigint, OUT urls bigint, OUT duplicates bigint,
    OUT duplicate_bytes bigint, OUT simhashes bigint, OUT last_fetched timestamptz,
    OUT last_seen timestamptz, OUT estimated boolean
)
    LANGUAGE plpgsql STABLE ${by_index} AS $$
DECLARE
    few constant integer := 100000;
    first_page bigint;
    last_page bigint;
BEGIN
    pages := (
        SELECT count(*)
        FROM (SELECT FROM pgsimhash.pages AS p WHERE p.collection_id = own_id LIMIT few + 1) AS p
    );
    IF pages > few THEN
        pages := (
            SELECT
                f.share * c.reltuples / c.relpages
                    * pg_relation_size(c.oid) / current_setting('block_size')::integer
            FROM pg_class AS c
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = c.relname
            CROSS JOIN unnest(s.most_common_vals::text::integer[], s.most_common_freqs)
                AS f (collection_id, share)
            WHERE c.oid = 'pgsimhash.pages'::regclass AND c.reltuples > 0 AND c.relpages > 0
                AND s.attname = 'collection_id' AND f.collection_id = own_id
        );
    END IF;
    estimated := coalesce(pages > few, false);
    IF estimated THEN
        SELECT min(p.page_id), max(p.page_id) INTO first_page, last_page
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id;
        -- The statistics of a table that grows fast may be far off.
        pages := least(pages, last_page - first_page + 1);
        SELECT
            pages * avg(s.is_present::integer),
            pages * avg((s.distance IS NOT NULL)::integer),
            pages * avg(CASE WHEN s.distance IS NULL THEN 0 ELSE coalesce(s.html_bytes, 0) END),
            pages * avg(s.indexed::integer), max(s.seen_at)
        INTO urls, duplicates, duplicate_bytes, simhashes, last_seen
        FROM generate_series(0, 499) AS place
        CROSS JOIN LATERAL (
            SELECT p.distance, p.html_bytes, p.indexed, ${present p} AS is_present, (
                SELECT l.seen_at
                FROM pgsimhash.last_seen AS l
                WHERE l.collection_id = own_id AND l.page_id = p.page_id
            ) AS seen_at
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id
                AND p.page_id >= first_page + (last_page - first_page) / 500 * place
            ORDER BY p.collection_id, p.page_id
            LIMIT 20
        ) AS s;
        last_fetched := (
            SELECT max(n.fetched_at)
            FROM (
                SELECT p.fetched_at
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id
                ORDER BY p.collection_id DESC, p.page_id DESC
                LIMIT 1000
            ) AS n
        );
    ELSE
        SELECT
            count(*), count(DISTINCT p.url), count(p.distance),
            coalesce(sum(p.html_bytes) FILTER (WHERE p.distance IS NOT NULL), 0),
            count(DISTINCT p.simhash), max(p.fetched_at)
        INTO pages, urls, duplicates, duplicate_bytes, simhashes, last_fetched
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id;
        last_seen := (
            SELECT max(s.seen_at) FROM pgsimhash.last_seen AS s WHERE s.collection_id = own_id
        );
    END IF;
END
$$;

-- The last versions of some pages, in order of arrival; without a number of versions, all of each.
CREATE FUNCTION pgsimhash._stored_pages(
    collection text, scheme text, urls text[], versions bigint
) RETURNS TABLE (
    url text, simhash bigint, fetched_at timestamptz, seen_at timestamptz, gone_at timestamptz,
    etag text, last_modified text, title text,
    canonical_url text, language text, noindex boolean, alternates text, features integer,
    tokens integer, html_bytes integer, html_digest bytea, text_digest bigint, structure bigint,
    signature_high bigint, signature_low bigint, markdown text, run_id bigint, duplicate_of text,
    distance smallint, covered boolean, selectors integer
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ${in_order} AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection, scheme);
BEGIN
    RETURN QUERY
    SELECT
        p.url, p.simhash, p.fetched_at, greatest(p.fetched_at, s.seen_at), s.gone_at,
        pgsimhash._validator(p.etag, s.etag, s.last_modified),
        pgsimhash._validator(p.last_modified, s.last_modified, s.etag),
        p.title, p.canonical_url, p.language, p.noindex, p.alternates, p.features, p.tokens,
        p.html_bytes, p.html_digest, p.text_digest, p.structure, p.signature_high, p.signature_low,
        p.markdown, p.run_id, o.url, p.distance, p.covered, p.selectors
    FROM unnest(urls) AS q (url)
    CROSS JOIN LATERAL (
        SELECT n.*
        FROM pgsimhash.pages AS n
        WHERE n.collection_id = own_id AND n.url BETWEEN q.url AND q.url
        ORDER BY n.url DESC, n.page_id DESC
        LIMIT versions
    ) AS p
    LEFT JOIN ${page p.duplicate_of} AS o ON true
    LEFT JOIN pgsimhash.last_seen AS s ON s.collection_id = own_id AND s.page_id = p.page_id
    ORDER BY p.page_id;
END
$$;

-- Versions of pages, in order of arrival, up to a number of bytes.
CREATE FUNCTION pgsimhash._next_versions(
    own_id integer, after_page bigint, batch integer, bytes bigint
) RETURNS SETOF pgsimhash.pages
    LANGUAGE sql STABLE PARALLEL SAFE ${in_order} AS $$
    SELECT p.*
    FROM (
        SELECT n.page_id, sum(octet_length(n.markdown)) OVER (
            ORDER BY n.page_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS bytes_before
        FROM (
            SELECT p.page_id, p.markdown
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.page_id > after_page
            ORDER BY p.page_id
            LIMIT batch
        ) AS n
    ) AS v
    CROSS JOIN ${page v.page_id} AS p
    WHERE coalesce(v.bytes_before < bytes, true)
    ORDER BY p.page_id;
$$;

-- Versions by their ids, those that exist.
CREATE FUNCTION pgsimhash._versions(own_id integer, page_ids bigint[])
RETURNS TABLE (page_id bigint, url text, distance smallint, markdown text)
    LANGUAGE sql STABLE PARALLEL SAFE ${in_order} AS $$
    SELECT p.page_id, p.url, p.distance, p.markdown
    FROM unnest(page_ids) AS u (page_id)
    JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = u.page_id;
$$;

-- The distinct simhashes of slice 0, 1, ... of their whole range, as one value with eight bytes per
-- simhash, big-endian: five times as fast as COPY.
CREATE FUNCTION pgsimhash._simhash_slice(own_id integer, number integer, slices integer)
RETURNS bytea
    LANGUAGE plpgsql STABLE ${in_order} AS $$
DECLARE
    width constant numeric := 2 ^ 64::numeric / slices;
    first constant bigint := ceil(width * number) - 2 ^ 63::numeric;
    last constant bigint := ceil(width * (number + 1)) - 2 ^ 63::numeric - 1;
BEGIN
    RETURN (
        SELECT string_agg(int8send(s.simhash), ''::bytea)
        FROM (
            SELECT DISTINCT p.simhash
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.simhash BETWEEN first AND last
            ORDER BY p.simhash
        ) AS s
    );
END
$$;

-- The bits from a page to the other page that its canonical link names; NULL if that is not stored.
CREATE FUNCTION pgsimhash._canonical_distance(
    own_id integer, url text, simhash bigint, canonical_url text
) RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT pgsimhash.hamming_distance(t.simhash, _canonical_distance.simhash)
    FROM ${newest _canonical_distance.canonical_url} AS t
    WHERE t.url <> _canonical_distance.url;
$$;

-- The first present versions whose canonical link names a page that is more than this many bits away,
-- and how many there are.
CREATE FUNCTION pgsimhash._canonical_elsewhere(own_id integer, distance integer, max_rows bigint)
RETURNS TABLE (page_id bigint, url text, canonical_url text, pages bigint)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.page_id, p.url, p.canonical_url, count(*) OVER ()
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = own_id AND p.canonical_url <> p.url AND NOT p.noindex
        AND pgsimhash._canonical_distance(own_id, p.url, p.simhash, p.canonical_url)
            > _canonical_elsewhere.distance
        AND ${present p}
    ORDER BY p.page_id
    LIMIT max_rows;
$$;

-- The present versions of all pages that share a cluster, or else a simhash, with another page. The
-- clusters come as arrays, because a standby has no temporary tables.
CREATE FUNCTION pgsimhash._clusters(own_id integer, simhashes bigint[], clusters bigint[])
RETURNS TABLE (
    cluster bigint, page_id bigint, url text, simhash bigint, fetched_at timestamptz, title text,
    features integer, canonical_url text, tokens integer, canonical_distance integer,
    noindex boolean, alternates text, signature_high bigint, signature_low bigint
)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT
        member.cluster, member.page_id, member.url, member.simhash, member.fetched_at,
        member.title, member.features, member.canonical_url, member.tokens,
        pgsimhash._canonical_distance(own_id, member.url, member.simhash, member.canonical_url),
        member.noindex, member.alternates, member.signature_high, member.signature_low
    FROM (
        SELECT
            p.*, coalesce(c.cluster, p.simhash) AS cluster,
            count(*) OVER (PARTITION BY coalesce(c.cluster, p.simhash)) AS pages
        FROM pgsimhash.pages AS p
        LEFT JOIN ROWS FROM (unnest(simhashes), unnest(clusters)) AS c (simhash, cluster)
            USING (simhash)
        WHERE p.collection_id = own_id
            AND ${present p}
    ) AS member
    WHERE member.pages > 1
    ORDER BY member.cluster, member.page_id;
$$;

-- The first of the present versions with each simhash.
CREATE FUNCTION pgsimhash._first_pages(own_id integer, simhashes bigint[])
    RETURNS TABLE (simhash bigint, url text, title text)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT q.simhash, p.url, p.title
    FROM unnest(simhashes) AS q (simhash)
    CROSS JOIN LATERAL (
        SELECT k.url, k.title
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = own_id
            AND k.simhash BETWEEN q.simhash AND q.simhash
            AND ${present k}
        ORDER BY k.simhash, k.page_id
        LIMIT 1
    ) AS p;
$$;

-- Adds rows to the saved clusters, the first instead of all earlier ones, without deleted pages.
CREATE FUNCTION pgsimhash._save_clusters(
    own_id integer, page_ids bigint[], clusters bigint[], canonical boolean[], first boolean
) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM pgsimhash.clusters AS c WHERE first AND c.collection_id = own_id;
    INSERT INTO pgsimhash.clusters (collection_id, page_id, cluster, is_canonical)
    SELECT own_id, p.page_id, c.cluster, c.is_canonical
    FROM ROWS FROM (
        unnest(page_ids), unnest(clusters), unnest(canonical)
    ) AS c (page_id, cluster, is_canonical)
    JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = c.page_id;
END
$$;

-- What makes the URLs of a copy and its original different, whichever came first: //host of an
-- original on another host; // for http, www, or a slash; ?name= for a parameter; /name/ for a
-- folder, or for a name at the end of a longer path; else an empty text.
CREATE FUNCTION pgsimhash._copy_cause(url text, original text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    host constant text := coalesce(pgsimhash.host_of(url), '');
    other_host constant text := coalesce(pgsimhash.host_of(original), '');
    path constant text := '^[^:/?#]*:?//[^/?#;]*/?([^?#;]*)';
    folders constant text[] :=
        array_remove(string_to_array(substring(url FROM path), '/'), '');
    other_folders constant text[] :=
        array_remove(string_to_array(substring(original FROM path), '/'), '');
    query constant text := coalesce(substring(split_part(url, '#', 1) FROM '[?;](.*)'), '');
    other_query constant text :=
        coalesce(substring(split_part(original, '#', 1) FROM '[?;](.*)'), '');
    cause text;
BEGIN
    IF original IS NULL OR folders IS NULL OR other_folders IS NULL THEN
        RETURN '';
    END IF;
    IF regexp_replace(host, '^www\.', '') <> regexp_replace(other_host, '^www\.', '') THEN
        RETURN '//' || other_host;
    END IF;
    -- Parameters of the copy alone come before a folder of the original alone.
    IF folders = other_folders OR folders <@ other_folders AND query <> '' AND other_query = '' THEN
        SELECT n.name INTO cause
        FROM (VALUES (1, query, other_query), (2, other_query, query)) AS q (side, own, other),
            regexp_split_to_table(q.own, '[?;&]') WITH ORDINALITY AS p (part, place),
            split_part(p.part, '=', 1) AS n (name)
        WHERE n.name <> '' AND p.part <> ALL (regexp_split_to_array(q.other, '[?;&]'))
        ORDER BY
            '&' || q.other ~ ('[?;&]' || regexp_replace(n.name, '\W', '.', 'g') || '='),
            q.side, p.place
        LIMIT 1;
        RETURN coalesce('?' || cause || '=', CASE WHEN query = other_query THEN '//' ELSE '' END);
    END IF;
    SELECT f.name INTO cause
    FROM (VALUES (1, folders, other_folders), (2, other_folders, folders)) AS q (side, own, other),
        unnest(
            q.own[1 : cardinality(q.own) - (cardinality(q.own) <= cardinality(q.other))::integer]
        ) WITH ORDINALITY AS f (name, place)
    WHERE f.name <> ALL (q.other)
    ORDER BY q.side, f.place
    LIMIT 1;
    RETURN coalesce('/' || cause || '/', '');
END
$$;

-- The figures of a report on the present versions of pages. A copy is one that duplicated a known
-- page when it arrived. by_cause and by_host are the most frequent _copy_cause of copies and the
-- hosts with the most copies; changed are the pages whose content changed by the most bits, summed
-- over versions. simhashes has all distinct ones, alone a sample of those that one page has.
CREATE FUNCTION pgsimhash._report(
    own_id integer, hosts bigint, urls bigint, sampled bigint,
    OUT figures json, OUT by_cause json, OUT by_host json, OUT changed json,
    OUT simhashes bytea, OUT alone bytea
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    WITH present AS MATERIALIZED (
        SELECT
            coalesce(p.host, '') AS host, p.url, p.simhash, p.html_bytes, p.distance, p.title,
            p.duplicate_of, p.noindex
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id
            AND ${present p}
    ), copies AS MATERIALIZED (
        SELECT
            p.host, p.title, pgsimhash._copy_cause(p.url, o.url) AS cause, p.url,
            o.url AS original,
            p.title IS DISTINCT FROM o.title AND NOT coalesce(
                starts_with(o.title || ' ', regexp_replace(p.title, n.site, ' '))
                OR starts_with(p.title || ' ', regexp_replace(o.title, n.site, ' ')), false
            ) AS has_own_title
        FROM present AS p
        LEFT JOIN pgsimhash.pages AS o
            ON o.collection_id = own_id AND o.page_id = p.duplicate_of
        -- Titles often end with the name of the site, on each host with another one.
        CROSS JOIN LATERAL (
            SELECT CASE WHEN p.host = o.host THEN '$' ELSE '(\s\W\s(?!.*\s\W\s).*)?$' END AS site
        ) AS n
        WHERE p.distance IS NOT NULL
    ), by_simhash AS MATERIALIZED (
        SELECT p.simhash, count(*) AS pages FROM present AS p GROUP BY p.simhash
    ), counted AS MATERIALIZED (
        SELECT
            p.host, count(*) AS pages, count(p.distance) AS copies,
            count(*) FILTER (WHERE p.noindex) AS noindex,
            coalesce(sum(p.html_bytes), 0) AS bytes,
            coalesce(sum(p.html_bytes) FILTER (WHERE p.distance IS NOT NULL), 0) AS copy_bytes
        FROM present AS p
        GROUP BY p.host
    ), causes AS MATERIALIZED (
        SELECT
            c.host, c.cause, count(*) AS copies,
            min(ARRAY[c.url, coalesce(c.original, '')]) AS example
        FROM copies AS c
        GROUP BY c.host, c.cause
    )
    SELECT
        (
            SELECT json_build_object(
                'pages', coalesce(sum(c.pages), 0), 'copies', coalesce(sum(c.copies), 0),
                'noindex', coalesce(sum(c.noindex), 0),
                'html_bytes', coalesce(sum(c.bytes), 0),
                'copy_bytes', coalesce(sum(c.copy_bytes), 0),
                'all_hosts', count(*), 'copy_hosts', count(*) FILTER (WHERE c.copies > 0),
                'alone', (SELECT count(*) FROM by_simhash AS s WHERE s.pages = 1)
            )
            FROM counted AS c
        ),
        (
            SELECT coalesce(json_agg(t), '[]')
            FROM (
                SELECT regexp_replace(c.cause, '^//.+', '//*') AS name, sum(c.copies) AS copies
                FROM causes AS c
                GROUP BY 1
                ORDER BY 2 DESC, 1
                LIMIT 4
            ) AS t
        ),
        (
            SELECT coalesce(json_agg(t), '[]')
            FROM (
                SELECT
                    l.host, l.pages, l.copies,
                    (
                        SELECT count(DISTINCT c.title) FROM copies AS c
                        WHERE c.host = l.host AND c.has_own_title
                    ) AS copy_titles,
                    l.copy_bytes,
                    (
                        SELECT coalesce(json_agg(n), '[]')
                        FROM (
                            SELECT c.cause AS name, c.copies, c.example
                            FROM causes AS c
                            WHERE c.host = l.host
                            ORDER BY c.copies DESC, c.cause
                            LIMIT 4
                        ) AS n
                    ) AS causes
                FROM counted AS l
                ORDER BY l.copies DESC, l.pages DESC, l.host
                LIMIT hosts
            ) AS t
        ),
        (SELECT string_agg(int8send(s.simhash), ''::bytea) FROM by_simhash AS s),
        (
            SELECT string_agg(int8send(t.simhash), ''::bytea)
            FROM (
                SELECT s.simhash FROM by_simhash AS s WHERE s.pages = 1
                ORDER BY hashint8(s.simhash), s.simhash
                LIMIT sampled
            ) AS t
        )
    INTO figures, by_cause, by_host, simhashes, alone;
    changed := (
        SELECT coalesce(json_agg(c), '[]')
        FROM (
            SELECT
                s.url, sum(s.moved) AS moved, count(*) + 1 AS versions, count(*) OVER () AS all_urls
            FROM (
                SELECT
                    p.url,
                    pgsimhash.hamming_distance(p.simhash, lag(p.simhash) OVER history) AS moved
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id
                WINDOW history AS (PARTITION BY p.url ORDER BY p.page_id)
            ) AS s
            WHERE s.moved IS NOT NULL
            GROUP BY s.url
            ORDER BY moved DESC, s.url
            LIMIT urls
        ) AS c
    );
END
$$;

-- The newest URLs of each host with the URL of their first original; www. is no part of a host.
CREATE FUNCTION pgsimhash._stories(own_id integer, max_urls integer)
RETURNS TABLE (site text, url text, story text)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE present AS MATERIALIZED (
        SELECT
            regexp_replace(p.host, '^www\.', '') AS site, p.url, p.page_id,
            row_number() OVER (
                PARTITION BY regexp_replace(p.host, '^www\.', '') ORDER BY p.page_id DESC
            ) AS place
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id
            AND p.host IS NOT NULL
            AND ${present p}
    ),
    -- Copies have copies: one of a page that max_copies kept, for example.
    chain AS (
        SELECT n.page_id AS first_id, n.page_id, 0 AS hops FROM present AS n WHERE n.place <= max_urls
        UNION ALL
        SELECT c.first_id, p.duplicate_of, c.hops + 1
        FROM chain AS c
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = c.page_id
        WHERE p.duplicate_of IS NOT NULL AND c.hops < 50
    ),
    root AS (
        SELECT DISTINCT ON (c.first_id) c.first_id, c.page_id
        FROM chain AS c
        ORDER BY c.first_id, c.hops DESC
    )
    SELECT n.site, n.url, coalesce(o.url, n.url)
    FROM present AS n
    JOIN root AS r ON r.first_id = n.page_id
    LEFT JOIN pgsimhash.pages AS o ON o.collection_id = own_id AND o.page_id = r.page_id
    ORDER BY n.site COLLATE "C", n.page_id;
$$;
