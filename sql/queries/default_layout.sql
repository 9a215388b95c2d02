-- The column's default, which `pgsimhash migrate --layout` can change.
SELECT l.name
FROM pgsimhash.layouts AS l
JOIN pg_attrdef AS d
    ON d.adrelid = 'pgsimhash.collections'::regclass
    AND pg_get_expr(d.adbin, d.adrelid) = quote_literal(l.name) || '::text'
