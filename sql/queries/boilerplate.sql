-- One version: a row for each host, or one without a host where it has none.
SELECT b.digest, b.pages, h.host, h.paragraphs
FROM pgsimhash.boilerplates AS b
LEFT JOIN pgsimhash.boilerplate_hosts AS h USING (version)
WHERE b.version = %(version)s
