INSERT INTO pgsimhash.collections (
    name, scheme, layout, default_distance, keep_markdown, policies_of
)
VALUES (
    %(name)s, %(scheme)s, %(layout)s, %(distance)s, %(keep_markdown)s, %(policies_of)s
)
ON CONFLICT DO NOTHING
