-- The column's default, which `pgsimhash migrate --layout` can change.
SELECT l.name
FROM pgsimhash.layouts AS l
JOIN pg_catalog.pg_attrdef AS d
    ON d.adrelid = 'pgsimhash.collections'::regclass::oid
    AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) = pg_catalog.quote_literal(l.name) || '::text'
