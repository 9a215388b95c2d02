-- The digests of the deployed tables and functions, which the package compares with its own.
CREATE FUNCTION pgsimhash._digests() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$SELECT '${digests}'$$;
