-- add_batch --
SELECT
    verdict, reason, distance, duplicate_of, original_page_id, keep, page_id, run_pages
FROM pgsimhash._add_batch(
    %(collection)s::text, %(collection_id)s::integer, %(pages)s::json, %(remember)s::boolean,
    %(by_policies)s::boolean, %(run_id)s::bigint, %(label)s::text
)
