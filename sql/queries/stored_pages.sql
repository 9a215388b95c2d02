-- The next versions of a collection's pages, in the order in which they came.
SELECT
    p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features,
    p.html_bytes, p.structure, p.sketch_high, p.sketch_low,
    CASE WHEN %(markdown)s THEN p.markdown END AS markdown,
    p.words, p.html_digest,
    (
        SELECT s.seen_at
        FROM pgsimhash.sightings AS s
        WHERE s.collection_id = p.collection_id AND s.page_id = p.page_id
    ) AS seen_at
FROM pgsimhash.pages AS p
WHERE p.collection_id = %(collection_id)s AND p.page_id > %(after_page)s
ORDER BY p.collection_id, p.page_id
LIMIT %(batch)s
