-- Boilerplate that was learnt, for every process that opens a collection without it. A version
-- stands for one content, by its digest: to leave out something else is another version.
CREATE TABLE pgsimhash.boilerplates (
    version text PRIMARY KEY,
    digest bytea NOT NULL,
    base text NOT NULL CONSTRAINT boilerplates_base_given CHECK (base <> ''),
    scheme text GENERATED ALWAYS AS (base || '+' || version) STORED,
    pages bigint NOT NULL,
    saved_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT boilerplates_version_fits CHECK (version = left(encode(digest, 'hex'), 8))
);

COMMENT ON COLUMN pgsimhash.boilerplates.scheme IS
    'The scheme without it; any other scheme, a plus and the version is one as well.';

COMMENT ON TABLE pgsimhash.boilerplates IS
    'Versions of what stands on most pages of hosts, learnt from so many pages.';

CREATE TABLE pgsimhash.boilerplate_hosts (
    version text NOT NULL REFERENCES pgsimhash.boilerplates ON DELETE CASCADE,
    host text NOT NULL,
    paragraphs bigint[] NOT NULL,
    CONSTRAINT boilerplate_hosts_pkey PRIMARY KEY (version, host)
);

COMMENT ON TABLE pgsimhash.boilerplate_hosts IS
    'The hosts of each version, with the hashes of their paragraphs (murmur3 of the words).';

-- The row is locked when this runs, and whoever creates a collection locks it too: so a collection
-- that is being created is waited for and seen.
CREATE FUNCTION pgsimhash.boilerplates_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    users constant text := (
        SELECT string_agg(u.name, ', ' ORDER BY u.name)
        FROM (
            SELECT c.name, c.scheme
            FROM pgsimhash.collections AS c
            UNION ALL
            SELECT format('%s (policy for %s)', c.name, p.host), p.scheme
            FROM pgsimhash.policies AS p
            JOIN pgsimhash.collections AS c USING (collection_id)
        ) AS u
        WHERE OLD.version = ANY ((string_to_array(u.scheme, '+'))[2:])
    );
BEGIN
    IF users IS NOT NULL THEN
        RAISE EXCEPTION 'boilerplate % is used by: %', OLD.version, users
            USING ERRCODE = 'foreign_key_violation',
            HINT = 'Keep it as long as these are there.';
    END IF;
    RETURN OLD;
END
$$;

CREATE TRIGGER boilerplates_deleted BEFORE DELETE ON pgsimhash.boilerplates
    FOR EACH ROW EXECUTE FUNCTION pgsimhash.boilerplates_deleted();
