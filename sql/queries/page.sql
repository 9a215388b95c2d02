SELECT
    p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
    p.html_bytes, original.url AS duplicate_of, p.distance, p.structure, p.markdown
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.pages AS original
    ON original.collection_id = p.collection_id AND original.page_id = p.duplicate_of
WHERE p.collection_id = %(collection_id)s AND p.url = %(url)s
ORDER BY p.page_id DESC
LIMIT 1
