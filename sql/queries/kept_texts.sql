-- The present versions with their Markdown, host by host, each host's in the order of arrival.
SELECT p.url, p.markdown
FROM pgsimhash.pages AS p
WHERE p.collection_id = %(collection_id)s
    AND p.host IS NOT NULL
    AND p.markdown IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS newer
        WHERE newer.collection_id = p.collection_id
            AND newer.url = p.url
            AND newer.page_id > p.page_id
    )
ORDER BY p.host, p.page_id
