-- Policies override settings of the collection for some hosts.

-- Sets the policy of the pages that match a pattern; omitted settings keep their values. After a
-- change of ignore_parameters, fill_addresses finds the pages that are stored already.
CREATE FUNCTION pgsimhash.set_policy(
    pattern text, distance integer DEFAULT NULL, verify boolean DEFAULT NULL,
    scope text DEFAULT NULL, window_size integer DEFAULT NULL, max_age interval DEFAULT NULL,
    canonical_link boolean DEFAULT NULL, max_copies integer DEFAULT NULL,
    min_tokens integer DEFAULT NULL, expire_after interval DEFAULT NULL,
    refetch_after interval DEFAULT NULL, content text DEFAULT NULL, ignore text DEFAULT NULL,
    ignore_parameters text DEFAULT NULL, sample_every integer DEFAULT NULL,
    collection text DEFAULT 'default'
) RETURNS pgsimhash.policies
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
#variable_conflict use_variable
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 1);
    given constant jsonb := jsonb_strip_nulls(jsonb_build_object(
        'distance', distance, 'verify', verify, 'scope', scope, 'window_size', window_size,
        'max_age', max_age, 'canonical_link', canonical_link, 'max_copies', max_copies,
        'min_tokens', min_tokens, 'expire_after', expire_after, 'refetch_after', refetch_after,
        'content', content, 'ignore', ignore, 'ignore_parameters', ignore_parameters,
        'sample_every', sample_every
    ));
    made pgsimhash.policies;
    broken text;
BEGIN
    IF given = '{}' THEN
        RAISE EXCEPTION 'a policy needs a setting'
            USING ERRCODE = 'PS010', HINT = 'Give one, such as max_copies.';
    END IF;
    PERFORM pgsimhash._check_selectors('content', content);
    PERFORM pgsimhash._check_selectors('ignore', ignore);
    PERFORM pgsimhash._check_policy_distance(distance);
    -- Locks the row against another session that sets this policy.
    INSERT INTO pgsimhash.policies AS p (collection_id, host, path)
    SELECT own_id, parts.host, parts.path
    FROM pgsimhash._pattern_parts(pattern) AS parts
    ON CONFLICT ON CONSTRAINT policies_pattern_key DO UPDATE SET set_at = excluded.set_at
    RETURNING p.* INTO made;
    made := jsonb_populate_record(made, given);
    DELETE FROM pgsimhash.policies AS p
    WHERE p.collection_id = own_id AND p.policy_id = made.policy_id;
    INSERT INTO pgsimhash.policies OVERRIDING SYSTEM VALUE VALUES (made.*);
    RETURN made;
EXCEPTION WHEN check_violation THEN
    -- A cluster gives no CONSTRAINT_NAME. Yours have other names.
    GET STACKED DIAGNOSTICS broken = MESSAGE_TEXT;
    broken := substring(broken FROM '\m(policies_[a-z_]+_(fits|known|positive))\M');
    IF broken IS NULL THEN
        RAISE;
    END IF;
    RAISE EXCEPTION 'a setting of the policy is out of range: %', broken
        USING ERRCODE = 'PS010',
        HINT = 'Ages are above 0, up to 1000 years; numbers from 1; the scope is host, collection '
            'or global; parameters are names with commas.';
END
$$;

-- Removes the policy of a pattern; returns whether there was one.
CREATE FUNCTION pgsimhash.remove_policy(pattern text, collection text DEFAULT 'default')
RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 1);
BEGIN
    DELETE FROM pgsimhash.policies AS p
    USING pgsimhash._pattern_parts(remove_policy.pattern) AS parts
    WHERE p.collection_id = own_id AND p.host = parts.host AND p.path = parts.path;
    RETURN FOUND;
END
$$;

-- How many pages of a pattern's host were read by other selectors than those of their policies.
--
-- This many are read differently when they are fetched again.
CREATE FUNCTION pgsimhash.count_reread(pattern text, collection text DEFAULT 'default')
RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    wanted constant text := (SELECT s.host FROM pgsimhash._pattern_parts(pattern) AS s);
BEGIN
    RETURN (
        SELECT count(*)
        FROM (
            SELECT array_agg(n.url) AS urls, array_agg(n.selectors) AS read_by
            FROM (
                SELECT p.url, p.selectors, row_number() OVER () / 10000 AS number
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id
                    AND p.html_digest IS NOT NULL
                    AND (
                        wanted = '*' OR p.host = wanted
                        OR right(p.host, length(wanted) + 1) = '.' || wanted
                    )
                    AND ${present p}
            ) AS n
            GROUP BY n.number
        ) AS part
        CROSS JOIN LATERAL ROWS FROM (
            unnest(part.read_by), pgsimhash._settings_for(own_id, part.urls)
        ) AS u (read_by)
        WHERE pgsimhash._selectors_digest(u.content, u.ignore) IS DISTINCT FROM u.read_by
    );
END
$$;

-- The digest of Selectors in pages/selectors.py; NULL without selectors.
CREATE FUNCTION pgsimhash._selectors_digest(content text, ignore text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN concat(content, ignore) <> '' THEN (
        ('x' || left(
            encode(sha256(convert_to(concat(content, E'\n', ignore), 'UTF8')), 'hex'), 8
        ))::bit(32)::bigint & 2147483647
    )::integer END;

-- The answer of should_fetch, the validators for a conditional request, and the address by which the
-- answer holds for other URLs: NULL without ignored parameters, or if the URL is a sample of them.
CREATE FUNCTION pgsimhash.fetch_conditions(
    url text, older_than interval DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS TABLE (is_due boolean, etag text, last_modified text, address text)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    asked text := url;
    present record;
    settings pgsimhash.policies;
    age interval;
BEGIN
    PERFORM pgsimhash._check_age(nullif(older_than, interval '0'));
    -- Redirects may form a circle.
    FOR hop IN 1..20 LOOP
        SELECT
            greatest(p.fetched_at, s.seen_at, s.gone_at) AS last_fetch,
            pgsimhash._validator(p.etag, s.etag, s.last_modified) AS etag,
            pgsimhash._validator(p.last_modified, s.last_modified, s.etag) AS last_modified,
            p.selectors
        INTO present
        FROM ${newest asked} AS p
        LEFT JOIN pgsimhash.last_seen AS s
            ON s.collection_id = own_id AND s.page_id = p.page_id;
        SELECT s.* INTO settings FROM pgsimhash._settings_for(own_id, ARRAY[asked]) AS s;
        age := coalesce(older_than, settings.refetch_after);
        -- Clocks of other machines may be ahead.
        is_due := present.last_fetch IS NULL OR coalesce(
            age = interval '0' OR present.last_fetch < statement_timestamp() - age, false
        );
        -- Samples show exceptions; they are always the same URLs, so that each is fetched once.
        IF is_due AND age IS DISTINCT FROM interval '0'
            AND settings.ignore_parameters IS NOT NULL
            AND hashtextextended(asked, 0) % coalesce(settings.sample_every, 100) <> 0
        THEN
            -- Of a redirect, that of the last page.
            address := pgsimhash.page_address(asked, settings.ignore_parameters);
            is_due := NOT pgsimhash._is_fresh(own_id, address, settings.ignore_parameters, age);
        END IF;
        -- After an answer 304, a page would stay as other selectors read it.
        IF hop = 1 AND present.selectors IS NOT DISTINCT FROM coalesce(
            pgsimhash._selectors_digest(settings.content, settings.ignore), present.selectors
        ) THEN
            etag := present.etag;
            last_modified := present.last_modified;
        END IF;
        asked := (
            SELECT r.target
            FROM pgsimhash.redirects AS r
            WHERE r.collection_id = own_id AND r.url COLLATE "default" = asked
                -- It may lead elsewhere since, or be a page again.
                AND (r.seen_at < statement_timestamp() - age) IS NOT TRUE
        );
        EXIT WHEN asked IS NULL OR NOT is_due;
    END LOOP;
    RETURN NEXT;
END
$$;

-- Whether a page of this address was seen within an age, or without one at all, and is not gone. The
-- newest 100 versions of the address count. A policy that changed meanwhile gave some of them an
-- address by other parameters.
CREATE FUNCTION pgsimhash._is_fresh(
    own_id integer, address text, ignore_parameters text, age interval
) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE ${in_order} AS $$
#variable_conflict use_variable
BEGIN
    RETURN EXISTS (
        SELECT
        FROM (
            SELECT DISTINCT ON (n.url)
                n.url, greatest(n.fetched_at, s.seen_at) AS seen_at, s.gone_at
            FROM (
                SELECT p.page_id, p.url, p.fetched_at
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id AND p.address COLLATE "default" = address
                ORDER BY p.collection_id DESC, p.address DESC, p.page_id DESC
                LIMIT 100
            ) AS n
            LEFT JOIN pgsimhash.last_seen AS s
                ON s.collection_id = own_id AND s.page_id = n.page_id
            ORDER BY n.url, n.page_id DESC
        ) AS v
        -- Not below DISTINCT, which would compute all the addresses.
        WHERE CASE
            WHEN v.gone_at IS NULL AND coalesce(v.seen_at >= statement_timestamp() - age, true)
            THEN pgsimhash.page_address(v.url, ignore_parameters) = address
        END
    );
END
$$;

-- Sets the addresses of the next 2000 pages of a collection after one, by ignore_parameters; returns
-- the last of these pages. Call it with that until it returns NULL. Until then should_fetch does not
-- know these pages by their addresses.
CREATE FUNCTION pgsimhash.fill_addresses(
    after_page bigint DEFAULT 0, collection text DEFAULT 'default'
) RETURNS bigint
    LANGUAGE plpgsql ${in_order} AS $$
DECLARE
    own_id constant integer := pgsimhash._lock_collection(collection, 2);
    ids bigint[];
    urls text[];
    former text[];
    last_page bigint;
BEGIN
    SELECT array_agg(n.page_id), array_agg(n.url), array_agg(n.address), max(n.page_id)
    INTO ids, urls, former, last_page
    FROM (
        SELECT p.page_id, p.url, p.address
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id AND p.page_id > after_page
        ORDER BY p.collection_id, p.page_id
        LIMIT 2000
    ) AS n;
    UPDATE pgsimhash.pages AS p
    SET address = n.address
    FROM (
        SELECT u.page_id, u.former, CASE
            WHEN u.ignore_parameters IS NOT NULL
            THEN pgsimhash.page_address(u.url, u.ignore_parameters)
        END AS address
        FROM ROWS FROM (
            unnest(ids, urls, former), pgsimhash._settings_for(own_id, urls)
        ) AS u (page_id, url, former)
        OFFSET 0
    ) AS n
    WHERE p.collection_id = own_id
        AND p.page_id = n.page_id
        AND n.address IS DISTINCT FROM n.former;
    RETURN last_page;
END
$$;

-- Stores the URLs to which other URLs lead.
CREATE FUNCTION pgsimhash._put_redirects(own_id integer, urls text[], targets text[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgsimhash._lock_collections(ARRAY[own_id], 1);
    INSERT INTO pgsimhash.redirects AS r (collection_id, url, target)
    SELECT own_id, u.url, max(u.target)
    FROM unnest(urls, targets) AS u (url, target)
    WHERE u.url <> u.target AND greatest(octet_length(u.url), octet_length(u.target)) <= 2048
    GROUP BY u.url
    ORDER BY u.url
    ON CONFLICT (collection_id, url) DO UPDATE
    SET target = excluded.target, seen_at = excluded.seen_at;
END
$$;

-- Whether a page is unknown, or was last seen longer ago than older_than, by default the
-- refetch_after of its policy; 0 means always.
CREATE FUNCTION pgsimhash.should_fetch(
    url text, older_than interval DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT c.is_due FROM pgsimhash.fetch_conditions(url, older_than, collection) AS c);

-- The answers of should_fetch for many URLs, in order; of those with one address, the first is fetched.
CREATE FUNCTION pgsimhash.should_fetch_many(
    urls text[], older_than interval DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS TABLE (is_due boolean, url text)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.is_due AND (c.address IS NULL OR u.number = min(u.number) OVER same_address), u.url
    FROM unnest(urls) WITH ORDINALITY AS u (url, number)
    CROSS JOIN LATERAL pgsimhash.fetch_conditions(u.url, older_than, collection) AS c
    WINDOW same_address AS (PARTITION BY c.address, c.is_due)
    ORDER BY u.number;
$$;

-- The settings that policies define for each URL, in order; no rows without policies. A policy matches
-- a URL if its host is the URL's host, a parent domain of it or *, and its path, in which * matches
-- anything, matches the rest of the URL from the first slash on. The first matching policy that defines
-- a setting decides it: longer hosts first, then longer paths, and * last. URLs that match the same
-- policies are decided once.
CREATE FUNCTION pgsimhash._settings_for(own_id integer, urls text[])
RETURNS SETOF pgsimhash.policies
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100 ${by_hash} AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgsimhash.policies AS p WHERE p.collection_id = own_id) THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT
            u.number, coalesce(pgsimhash.host_of(u.url), '') AS host,
            coalesce(substring(u.url FROM '^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(.*)$'), '') AS path
        FROM unnest(urls) WITH ORDINALITY AS u (url, number)
    ),
    hosts AS MATERIALIZED (
        SELECT h.host, array_to_string(h.labels[label:], '.') AS policy_host
        FROM (
            SELECT DISTINCT a.host, string_to_array(a.host, '.') AS labels FROM page AS a
        ) AS h
        CROSS JOIN LATERAL generate_subscripts(h.labels, 1) AS label
        UNION ALL
        SELECT DISTINCT a.host, '*' FROM page AS a
    ),
    ranked AS MATERIALIZED (
        SELECT
            p.policy_id, p.host, p.path, jsonb_strip_nulls(to_jsonb(p)) AS settings,
            replace(replace(replace(replace(
                p.path, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%') AS alike,
            row_number() OVER (
                ORDER BY
                    p.host = '*', length(p.host) DESC, p.path = '*', length(p.path) DESC,
                    p.path COLLATE "C"
            ) AS rank
        FROM pgsimhash.policies AS p
        WHERE p.collection_id = own_id
            AND p.host COLLATE "default" = ANY (ARRAY(SELECT DISTINCT h.policy_host FROM hosts AS h))
    ),
    fitting AS MATERIALIZED (
        SELECT a.number, array_agg(r.policy_id ORDER BY r.rank) AS policy_ids
        FROM page AS a
        JOIN hosts AS h USING (host)
        JOIN ranked AS r ON r.host = h.policy_host
        WHERE r.path = '*'
            OR CASE WHEN a.path LIKE '/%' THEN a.path ELSE '/' || a.path END LIKE r.alike
        GROUP BY a.number
    ),
    -- Of several values with one key, the last one stays.
    merged AS MATERIALIZED (
        SELECT f.policy_ids, jsonb_populate_record(
            NULL::pgsimhash.policies, jsonb_object_agg(s.key, s.value ORDER BY o.place DESC)
        ) AS settings
        FROM (SELECT DISTINCT f.policy_ids FROM fitting AS f) AS f
        CROSS JOIN LATERAL unnest(f.policy_ids) WITH ORDINALITY AS o (policy_id, place)
        JOIN ranked AS r USING (policy_id)
        CROSS JOIN LATERAL jsonb_each(r.settings) AS s
        GROUP BY f.policy_ids
    )
    SELECT (m.settings).*
    FROM page AS a
    LEFT JOIN fitting AS f USING (number)
    LEFT JOIN merged AS m USING (policy_ids)
    ORDER BY a.number;
END
$$;

-- The settings that policies define for a URL, and the pattern of the most specific one; NULL if the
-- collection's own apply.
CREATE FUNCTION pgsimhash.policy_for(url text, collection text DEFAULT 'default') RETURNS TABLE (
    host text, path text, distance smallint, verify boolean, scope text, window_size integer,
    max_age interval, canonical_link boolean, max_copies integer, min_tokens integer,
    expire_after interval, refetch_after interval, content text, ignore text,
    ignore_parameters text, sample_every integer
)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    -- Not a row of the table, to which an upgrade may add a column while callers have a plan.
    SELECT
        s.host, s.path, s.distance, s.verify, s.scope, s.window_size, s.max_age,
        s.canonical_link, s.max_copies, s.min_tokens, s.expire_after, s.refetch_after,
        s.content, s.ignore, s.ignore_parameters, s.sample_every
    FROM (SELECT) AS always
    LEFT JOIN pgsimhash._settings_for(pgsimhash._id_of(collection), ARRAY[url]) AS s ON true;
$$;

-- An error unless a text is NULL, empty, or a list of supported selectors, by the grammar of
-- pages/selectors.py.
CREATE FUNCTION pgsimhash._check_selectors(setting text, selectors text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    never constant text := '\\\u0001-\u001f\ufffe\uffff';
    other constant text := '[^\u0001-\u007f' || never || ']|\\[^0-9a-fA-F' || never || ']';
    start constant text := '(?:[_a-zA-Z]|' || other || ')';
    inside constant text := '(?:[-_a-zA-Z0-9]|' || other || ')';
    named constant text := '-?' || start || inside || '*';
    attribute constant text := '\[\s*' || named || '\s*(?:[~|^$*]?=\s*(?:' || named
        || '|"[^"' || never || ']*"|''[^''' || never || ']*'')\s*)?\]';
    simple constant text := '(?:#' || inside || '+|\.' || named || '|' || attribute || ')';
    tag constant text := '(?:' || named || '|\*)';
    -- Alembic takes a colon before a name for a parameter.
    negated constant text :=
        ':' || 'not\(\s*(?:' || tag || simple || '*|' || simple || '+)\)';
    more constant text := '(?:' || simple || '|' || negated || ')';
    compound constant text := '(?:' || tag || more || '*|' || more || '+)';
    white constant text := E' \t\n\r\f';
    space constant text := '[' || white || ']';
    selector constant text :=
        replace('^' || compound || '(?:(?:\s*>\s*|\s+)' || compound || ')*', '\s', space);
    rest text COLLATE "C" := ltrim(rtrim(selectors, white), white);
    piece text;
    number integer := 0;
BEGIN
    WHILE selectors <> '' LOOP
        number := number + 1;
        piece := substring(rest FROM selector);
        EXIT WHEN piece IS NULL OR length(piece) > 500 OR number > 20;
        rest := substr(rest, length(piece) + 1);
        IF rest = '' THEN
            RETURN;
        END IF;
        piece := substring(rest FROM '^' || space || '*,' || space || '*');
        EXIT WHEN piece IS NULL;
        rest := substr(rest, length(piece) + 1);
    END LOOP;
    IF selectors <> '' THEN
        RAISE EXCEPTION '%: selector % is not supported, at "%"', setting, number, left(rest, 20)
            USING ERRCODE = 'PS010',
            HINT = 'Up to 20 selectors of 500 characters have tags, classes, ids, attributes, '
                'descendants, children (>), and not() of one of the first four.';
    END IF;
END
$$;

CREATE FUNCTION pgsimhash._check_age(age interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF age <= interval '0' OR age > interval '1000 years' THEN
        RAISE EXCEPTION 'an age must be positive, up to 1000 years, not %', age
            USING ERRCODE = 'PS010', HINT = 'Give an age such as interval ''90 days''.';
    END IF;
END
$$;

-- The host and the path of a pattern such as example.com/shop/*.
CREATE FUNCTION pgsimhash._pattern_parts(pattern text, OUT host text, OUT path text)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    host := lower(split_part(pattern, '/', 1) COLLATE "C");
    path := coalesce(nullif(substring(pattern FROM length(host) + 1), ''), '*');
    IF host ~ '^((?!\.)[^/?#@:\s*]+|\*)$' AND path !~ '\s' AND length(path) <= 500 THEN
        RETURN;
    END IF;
    RAISE EXCEPTION '"%" is not a pattern of a policy', coalesce(pattern, 'NULL')
        USING ERRCODE = 'PS010',
        HINT = 'Give a host or * for all, without https://, and optionally a path: '
            'example.com/shop/*.';
END
$$;

-- An error if the layout does not support the distance of a policy.
CREATE FUNCTION pgsimhash._check_policy_distance(distance integer) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF distance IS NOT NULL AND pgsimhash.radii(distance) IS NULL THEN
        RAISE EXCEPTION 'the policy has distance %, which layout % does not support',
            distance, pgsimhash.layout()
            USING ERRCODE = 'PS010',
            HINT = 'Give 0 to ${largest} bits, or rebuild with another layout (into_schema).';
    END IF;
END
$$;

CREATE FUNCTION pgsimhash._policies(own_id integer) RETURNS SETOF pgsimhash.policies
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.*
    FROM pgsimhash.policies AS p
    WHERE p.collection_id = own_id
    ORDER BY p.host COLLATE "C", p.path COLLATE "C";
$$;

-- A URL in one spelling, without the parameters that do not matter: names with commas between them, in
-- any case, in which * matches anything. The other parameters are sorted by name, a repeated one stays
-- once, and one without a value gets an empty one. Scheme and host are in lower case, percent-encoding
-- is as short as possible, and the fragment goes, unless it is a route (#/ or #!). A URL that is not
-- http or https, or would be longer than 2048 bytes, stays.
CREATE FUNCTION pgsimhash.page_address(url text, ignore_parameters text DEFAULT '') RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts constant text[] :=
        regexp_match(url, '^(https?://[^/?#]*)([^?#]*)(?:\?([^#]*))?(#[!/].*)?', 'i');
    ignored constant text[] := ARRAY(
        SELECT replace(replace(replace(
            lower(pgsimhash._spelled(btrim(g), '*') COLLATE "C"), '%', '\%'), '_', '\_'), '*', '%')
        FROM regexp_split_to_table(ignore_parameters, ',') AS g
    );
    address text;
BEGIN
    IF parts IS NULL THEN
        RETURN url;
    END IF;
    address := (
        SELECT string_agg(q.name || '=' || q.value, '&' ORDER BY q.name COLLATE "C", q.number)
        FROM (
            SELECT p.name, p.value, min(p.number) AS number
            FROM (
                SELECT
                    pgsimhash._spelled(split_part(u.piece, '=', 1)) AS name,
                    pgsimhash._spelled(substring(u.piece FROM position('=' IN u.piece || '=') + 1))
                        AS value,
                    u.number
                FROM regexp_split_to_table(replace(parts[3], '+', ' '), '&')
                    WITH ORDINALITY AS u (piece, number)
                WHERE u.piece <> ''
            ) AS p
            WHERE p.name = '' OR NOT lower(p.name COLLATE "C") LIKE ANY (ignored)
            GROUP BY p.name, p.value
        ) AS q
    );
    address := lower(parts[1] COLLATE "C") || (
        SELECT string_agg(pgsimhash._spelled(s.segment, '!$&''()*+,;=:@'), '/' ORDER BY s.number)
        FROM regexp_split_to_table(coalesce(nullif(parts[2], ''), '/'), '/')
            WITH ORDINALITY AS s (segment, number)
    ) || coalesce('?' || address, '') || coalesce(parts[4], '');
    RETURN CASE WHEN octet_length(address) > 2048 THEN url ELSE address END;
END
$$;

-- Part of a URL with only those characters percent-encoded that are neither unreserved nor given.
CREATE FUNCTION pgsimhash._spelled(part text, unencoded text DEFAULT '') RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN translate(part, unencoded, '') ~ '^[A-Za-z0-9_.~-]*$' THEN part ELSE (
        SELECT string_agg(
            CASE
                WHEN o.octet BETWEEN 33 AND 126
                    AND (chr(o.octet) ~ '[A-Za-z0-9_.~-]' OR strpos(unencoded, chr(o.octet)) > 0)
                THEN chr(o.octet)
                ELSE '%' || upper(lpad(to_hex(o.octet), 2, '0'))
            END, '' ORDER BY o.place
        )
        FROM (
            SELECT string_agg(CASE
                WHEN t.token[1] ~ '^%.' THEN decode(substring(t.token[1] FROM 2), 'hex')
                ELSE convert_to(t.token[1], 'UTF8')
            END, '' ORDER BY t.number) AS octets
            FROM regexp_matches(part, '%[0-9A-Fa-f]{2}|%|[^%]+', 'g')
                WITH ORDINALITY AS t (token, number)
        ) AS s
        CROSS JOIN LATERAL (
            SELECT n AS place, get_byte(s.octets, n) AS octet
            FROM generate_series(0, length(s.octets) - 1) AS n
        ) AS o
    ) END;
