-- Each batch writes the run's row, so a run that a rollback or an undo removed comes back with the
-- next batch, and one that was interrupted ends with its last one.
INSERT INTO pgsimhash.runs AS r (
    run_id, collection_id, what, pages, new, duplicates, unchanged, first_page, last_page
)
VALUES (
    %(run_id)s, %(collection_id)s, %(what)s, %(pages)s, %(new)s, %(duplicates)s, %(unchanged)s,
    %(first_page)s, %(last_page)s
)
ON CONFLICT (run_id) DO UPDATE SET
    finished_at = pg_catalog.now(),
    pages = r.pages + excluded.pages,
    new = r.new + excluded.new,
    duplicates = r.duplicates + excluded.duplicates,
    unchanged = r.unchanged + excluded.unchanged,
    first_page = least(r.first_page, excluded.first_page),
    last_page = greatest(r.last_page, excluded.last_page)
