% for permutation in layout.permutations[1:]:
CREATE INDEX${" CONCURRENTLY" if concurrently else ""} ${layout.table}_${permutation.column}_idx
    ON pgsimhash.${layout.table} (${permutation.column}, simhash) WITH (fillfactor = 97);

% endfor
