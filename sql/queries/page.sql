SELECT
    p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
    p.html_bytes, original.url AS duplicate_of, p.distance, p.structure, p.markdown,
    greatest(p.fetched_at, s.seen_at) AS seen_at, p.run_id
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.pages AS original
    ON original.collection_id = p.collection_id AND original.page_id = p.duplicate_of
LEFT JOIN pgsimhash.sightings AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
WHERE p.collection_id = %(collection_id)s AND p.url = %(url)s
ORDER BY p.page_id DESC
LIMIT 1
