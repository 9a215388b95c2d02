-- What holds for the pages of some hosts in place of what holds for the collection.

-- Internal: for the functions below and for the package, and may change with any release.

-- The most specific policy comes first.
CREATE FUNCTION pgsimhash._policies_for(own_id integer, url text) RETURNS SETOF pgsimhash.policies
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT p.*
        FROM pgsimhash.policies AS p
        CROSS JOIN (
            SELECT
                string_to_array(pgsimhash.host_of(url), '.') AS labels,
                substring(url FROM '^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(.*)$') AS path
        ) AS u
        WHERE p.collection_id = own_id
            AND p.host = ANY (
                ARRAY(
                    SELECT array_to_string(u.labels[label:], '.')
                    FROM generate_subscripts(u.labels, 1) AS label
                ) || ARRAY['*']
            )
            AND CASE WHEN u.path LIKE '/%' THEN u.path ELSE '/' || u.path END LIKE
                replace(replace(replace(replace(
                    p.path, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
        ORDER BY
            p.host = '*', length(p.host) DESC, p.path = '*', length(p.path) DESC,
            p.path COLLATE "C";
    END;

COMMENT ON FUNCTION pgsimhash._policies_for(integer, text) IS
    'The policies that fit a URL, the most specific first.';

CREATE FUNCTION pgsimhash._expire_after(own_id integer, url text) RETURNS interval
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT p.expire_after
        FROM pgsimhash._policies_for(own_id, _expire_after.url) WITH ORDINALITY AS p
        WHERE p.expire_after IS NOT NULL
        ORDER BY p.ordinality
        LIMIT 1;
    END;

COMMENT ON FUNCTION pgsimhash._expire_after(integer, text) IS
    'After how long a page that was not seen again is forgotten, by policy.';

-- The host and the path of a pattern such as example.com/shop/*.
CREATE FUNCTION pgsimhash._pattern_parts(pattern text, OUT host text, OUT path text)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    host := lower(split_part(pattern, '/', 1));
    path := coalesce(nullif(substring(pattern FROM length(host) + 1), ''), '*');
    IF (host ~ '^[^/?#@:\s*]+$' OR host = '*') AND path !~ '\s' AND length(path) <= 500 THEN
        RETURN;
    END IF;
    RAISE EXCEPTION '"%" is no pattern of a policy', coalesce(pattern, 'NULL')
        USING ERRCODE = 'invalid_parameter_value',
        HINT = 'Give a host or * for all, without https://, and after it a path if you like: '
            'example.com/shop/*.';
END
$$;

CREATE FUNCTION pgsimhash._policy_checked() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    small record;
BEGIN
    SELECT l.name, l.largest_distance INTO small
    FROM pgsimhash.collections AS c
    JOIN pgsimhash.layouts AS l ON l.name = c.layout
    WHERE c.collection_id = NEW.collection_id
        AND l.largest_distance < NEW.distance
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a policy asks for distance %, and layout "%" answers up to %',
            NEW.distance, small.name, small.largest_distance
            USING ERRCODE = 'check_violation',
            HINT = 'Give a smaller distance, or another layout: pgsimhash collection rebuild --layout.';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER policy_checked BEFORE INSERT OR UPDATE ON pgsimhash.policies
    FOR EACH ROW EXECUTE FUNCTION pgsimhash._policy_checked();

-- Writers that remember policies see by the number that there are others now. It comes from a
-- sequence, because numbers that were rolled back must not come again.
CREATE FUNCTION pgsimhash._policies_changed() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    UPDATE pgsimhash.collections AS c
    SET policies_version = nextval(pg_get_serial_sequence('pgsimhash.policies', 'policy_id'))
    WHERE c.collection_id IN (OLD.collection_id, NEW.collection_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER policies_changed AFTER INSERT OR UPDATE OR DELETE ON pgsimhash.policies
    FOR EACH ROW EXECUTE FUNCTION pgsimhash._policies_changed();

-- Public.

-- Settings that are NULL stay as they are.
CREATE FUNCTION pgsimhash.set_policy(
    collection text, pattern text, distance integer DEFAULT NULL, verify boolean DEFAULT NULL,
    scope text DEFAULT NULL, newest integer DEFAULT NULL, max_age interval DEFAULT NULL,
    canonical_link boolean DEFAULT NULL, keep_first integer DEFAULT NULL,
    min_words integer DEFAULT NULL, expire_after interval DEFAULT NULL
) RETURNS pgsimhash.policies
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    made pgsimhash.policies;
BEGIN
    PERFORM pgsimhash._name_for(set_policy.collection, 'simhashes');
    INSERT INTO pgsimhash.policies AS p (
        collection_id, host, path, distance, verify, scope, newest, max_age, canonical_link,
        keep_first, min_words, expire_after
    )
    SELECT
        c.collection_id, parts.host, parts.path, set_policy.distance, set_policy.verify,
        set_policy.scope, set_policy.newest, set_policy.max_age, set_policy.canonical_link,
        set_policy.keep_first, set_policy.min_words, set_policy.expire_after
    FROM pgsimhash.collections AS c
    CROSS JOIN pgsimhash._pattern_parts(set_policy.pattern) AS parts
    WHERE c.name = set_policy.collection
    ON CONFLICT ON CONSTRAINT policies_pattern_key DO UPDATE SET
        distance = coalesce(excluded.distance, p.distance),
        verify = coalesce(excluded.verify, p.verify),
        scope = coalesce(excluded.scope, p.scope),
        newest = coalesce(excluded.newest, p.newest),
        max_age = coalesce(excluded.max_age, p.max_age),
        canonical_link = coalesce(excluded.canonical_link, p.canonical_link),
        keep_first = coalesce(excluded.keep_first, p.keep_first),
        min_words = coalesce(excluded.min_words, p.min_words),
        expire_after = coalesce(excluded.expire_after, p.expire_after),
        set_at = now()
    RETURNING p.* INTO made;
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash.set_policy(
    text, text, integer, boolean, text, integer, interval, boolean, integer, integer, interval
) IS 'Sets what holds for the pages that a pattern fits; settings not given stay as they were.';

CREATE FUNCTION pgsimhash.remove_policy(collection text, pattern text) RETURNS boolean
    LANGUAGE sql
    BEGIN ATOMIC
        WITH removed AS (
            DELETE FROM pgsimhash.policies AS p
            USING pgsimhash.collections AS c, pgsimhash._pattern_parts(remove_policy.pattern) AS parts
            WHERE c.name = remove_policy.collection
                AND p.collection_id = c.collection_id
                AND p.host = parts.host
                AND p.path = parts.path
            RETURNING p.policy_id
        )
        SELECT EXISTS (SELECT FROM removed);
    END;

COMMENT ON FUNCTION pgsimhash.remove_policy(text, text) IS
    'Takes back what was set for a pattern; whether anything was.';

CREATE FUNCTION pgsimhash.policy_for(collection text, url text) RETURNS TABLE (
    distance smallint, verify boolean, scope text, newest integer, max_age interval,
    canonical_link boolean, keep_first integer, min_words integer, expire_after interval
)
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT
            (array_agg(p.distance ORDER BY p.ordinality) FILTER (WHERE p.distance IS NOT NULL))[1],
            (array_agg(p.verify ORDER BY p.ordinality) FILTER (WHERE p.verify IS NOT NULL))[1],
            (array_agg(p.scope ORDER BY p.ordinality) FILTER (WHERE p.scope IS NOT NULL))[1],
            (array_agg(p.newest ORDER BY p.ordinality) FILTER (WHERE p.newest IS NOT NULL))[1],
            (array_agg(p.max_age ORDER BY p.ordinality) FILTER (WHERE p.max_age IS NOT NULL))[1],
            (array_agg(p.canonical_link ORDER BY p.ordinality) FILTER (WHERE p.canonical_link IS NOT NULL))[1],
            (array_agg(p.keep_first ORDER BY p.ordinality) FILTER (WHERE p.keep_first IS NOT NULL))[1],
            (array_agg(p.min_words ORDER BY p.ordinality) FILTER (WHERE p.min_words IS NOT NULL))[1],
            (array_agg(p.expire_after ORDER BY p.ordinality) FILTER (WHERE p.expire_after IS NOT NULL))[1]
        FROM pgsimhash.collections AS c
        CROSS JOIN LATERAL
            pgsimhash._policies_for(c.collection_id, policy_for.url) WITH ORDINALITY AS p
        WHERE c.name = policy_for.collection;
    END;

COMMENT ON FUNCTION pgsimhash.policy_for(text, text) IS
    'The settings that hold for a URL by policy; NULL where the collection''s own hold.';
