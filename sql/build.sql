-- The build that deployed the schema: the digests of its tables and functions, which the package
-- compares with its own, its revision, and the oldest revision whose packages can use it too.
CREATE FUNCTION pgsimhash._build() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$SELECT '${build}'$$;
