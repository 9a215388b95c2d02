<%!
    SETTINGS = (
        "distance", "verify", "scope", "newest", "max_age", "canonical_link", "keep_first",
        "min_words", "expire_after", "scheme",
    )
%>\
-- What holds for the pages of some hosts in place of what holds for the collection. A setting that
-- is NULL is left to the next policy that fits: of the page's host, of the hosts it is a subdomain
-- of, of all hosts; for the same host the one with the longer path comes first. Ages are such as can be
-- taken off the present time, or else no writer could go on.
CREATE TABLE pgsimhash.policies (
    policy_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    host text NOT NULL
        CONSTRAINT policies_host_given
            CHECK (host = '*' OR host = lower(host) AND host ~ '^[^/?#@:\s*]+$'),
    path text NOT NULL DEFAULT '*'
        CONSTRAINT policies_path_fits CHECK (path = '*' OR path ~ '^/\S*$' AND length(path) <= 500),
    distance smallint CONSTRAINT policies_distance_fits CHECK (distance BETWEEN 0 AND ${distance_max}),
    verify boolean,
    scope text CONSTRAINT policies_scope_known CHECK (scope IN ('host', 'collection', 'global')),
    newest integer CONSTRAINT policies_newest_positive CHECK (newest >= 1),
    max_age interval
        CONSTRAINT policies_max_age_fits
            CHECK (max_age > interval '0' AND max_age <= interval '1000 years'),
    canonical_link boolean,
    keep_first integer CONSTRAINT policies_keep_first_positive CHECK (keep_first >= 1),
    min_words integer CONSTRAINT policies_min_words_positive CHECK (min_words >= 1),
    expire_after interval
        CONSTRAINT policies_expire_after_fits
            CHECK (expire_after > interval '0' AND expire_after <= interval '1000 years'),
    scheme text CONSTRAINT policies_scheme_given CHECK (scheme <> ''),
    set_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT policies_pattern_key UNIQUE (collection_id, host, path)
);

COMMENT ON TABLE pgsimhash.policies IS
    'Settings for the pages of a host and its subdomains, * for all, and a path with * in it.';

CREATE FUNCTION pgsimhash.policy_checked() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    small record;
BEGIN
    SELECT l.name, l.largest_distance INTO small
    FROM pgsimhash.collections AS c
    JOIN pgsimhash.layouts AS l ON l.name IN (c.layout, c.next_layout)
    WHERE NEW.collection_id IN (c.collection_id, c.policies_of)
        AND l.largest_distance < NEW.distance
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a policy asks for distance %, and layout "%" answers up to %',
            NEW.distance, small.name, small.largest_distance
            USING ERRCODE = 'check_violation',
            HINT = 'Give a smaller distance, or move to another layout: pgsimhash collection relayout.';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER policy_checked BEFORE INSERT OR UPDATE ON pgsimhash.policies
    FOR EACH ROW EXECUTE FUNCTION pgsimhash.policy_checked();

-- Writers that remember policies see by the number that there are others now. It comes from a
-- sequence, because numbers that were rolled back must not come again.
CREATE FUNCTION pgsimhash.policies_changed() RETURNS trigger
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
    FOR EACH ROW EXECUTE FUNCTION pgsimhash.policies_changed();

-- The most specific policy comes first.
CREATE FUNCTION pgsimhash.policies_for(own_id integer, url text) RETURNS SETOF pgsimhash.policies
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

COMMENT ON FUNCTION pgsimhash.policies_for(integer, text) IS
    'The policies that fit a URL, the most specific first.';

CREATE FUNCTION pgsimhash.policy_for(collection text, url text) RETURNS TABLE (
    distance smallint, verify boolean, scope text, newest integer, max_age interval,
    canonical_link boolean, keep_first integer, min_words integer, expire_after interval,
    scheme text
)
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT
% for setting in SETTINGS:
            (array_agg(p.${setting} ORDER BY p.ordinality) FILTER (WHERE p.${setting} IS NOT NULL))[1]${"" if loop.last else ","}
% endfor
        FROM pgsimhash.collections AS c
        CROSS JOIN LATERAL pgsimhash.policies_for(
            coalesce(c.policies_of, c.collection_id), policy_for.url
        ) WITH ORDINALITY AS p
        WHERE c.name = policy_for.collection;
    END;

COMMENT ON FUNCTION pgsimhash.policy_for(text, text) IS
    'The settings that hold for a URL by policy; NULL where the collection''s own hold.';

CREATE FUNCTION pgsimhash.expire_after(own_id integer, url text) RETURNS interval
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT p.expire_after
        FROM pgsimhash.policies_for(own_id, expire_after.url) WITH ORDINALITY AS p
        WHERE p.expire_after IS NOT NULL
        ORDER BY p.ordinality
        LIMIT 1;
    END;

COMMENT ON FUNCTION pgsimhash.expire_after(integer, text) IS
    'After how long a page that was not seen again is forgotten, by policy.';

-- The host and the path of a pattern such as example.com/shop/*.
CREATE FUNCTION pgsimhash.pattern_parts(pattern text, OUT host text, OUT path text)
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

-- Settings that are NULL stay as they are.
CREATE FUNCTION pgsimhash.set_policy(
    collection text, pattern text, distance integer DEFAULT NULL, verify boolean DEFAULT NULL,
    scope text DEFAULT NULL, newest integer DEFAULT NULL, max_age interval DEFAULT NULL,
    canonical_link boolean DEFAULT NULL, keep_first integer DEFAULT NULL,
    min_words integer DEFAULT NULL, expire_after interval DEFAULT NULL, scheme text DEFAULT NULL
) RETURNS pgsimhash.policies
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    made pgsimhash.policies;
BEGIN
    PERFORM pgsimhash.name_for(set_policy.collection, 'simhashes');
    INSERT INTO pgsimhash.policies AS p (
        collection_id, host, path, distance, verify, scope, newest, max_age, canonical_link,
        keep_first, min_words, expire_after, scheme
    )
    SELECT
        coalesce(c.policies_of, c.collection_id), parts.host, parts.path, set_policy.distance,
        set_policy.verify, set_policy.scope, set_policy.newest, set_policy.max_age,
        set_policy.canonical_link, set_policy.keep_first, set_policy.min_words,
        set_policy.expire_after, set_policy.scheme
    FROM pgsimhash.collections AS c
    CROSS JOIN pgsimhash.pattern_parts(set_policy.pattern) AS parts
    WHERE c.name = set_policy.collection
    ON CONFLICT ON CONSTRAINT policies_pattern_key DO UPDATE SET
% for setting in SETTINGS:
        ${setting} = coalesce(excluded.${setting}, p.${setting}),
% endfor
        set_at = now()
    RETURNING p.* INTO made;
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash.set_policy(
    text, text, integer, boolean, text, integer, interval, boolean, integer, integer, interval, text
) IS 'Sets what holds for the pages that a pattern fits; settings not given stay as they were.';

CREATE FUNCTION pgsimhash.remove_policy(collection text, pattern text) RETURNS boolean
    LANGUAGE sql
    BEGIN ATOMIC
        WITH removed AS (
            DELETE FROM pgsimhash.policies AS p
            USING pgsimhash.collections AS c, pgsimhash.pattern_parts(remove_policy.pattern) AS parts
            WHERE c.name = remove_policy.collection
                AND p.collection_id = coalesce(c.policies_of, c.collection_id)
                AND p.host = parts.host
                AND p.path = parts.path
            RETURNING p.policy_id
        )
        SELECT EXISTS (SELECT FROM removed);
    END;

COMMENT ON FUNCTION pgsimhash.remove_policy(text, text) IS
    'Takes back what was set for a pattern; whether anything was.';
