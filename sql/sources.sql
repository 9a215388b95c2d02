-- The ingested files, and which of their records a rerun skips.

-- Adds the files that are unknown, before the first page of a file is stored: an undo deletes the row,
-- also of a job that goes on. Returns the rows of all these files; a single page that was deleted
-- since counts as not stored.
CREATE FUNCTION pgsimhash._begin_sources(own_id integer, rows jsonb)
RETURNS SETOF pgsimhash.sources
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    paths constant text[] := ARRAY(SELECT r ->> 'path' FROM jsonb_array_elements(rows) AS r);
BEGIN
    INSERT INTO pgsimhash.sources (collection_id, path, size, modified_ns, last_record, failed)
    SELECT own_id, r.path, r.size, r.modified_ns, 0, '{}'
    FROM jsonb_populate_recordset(NULL::pgsimhash.sources, rows) AS r
    ORDER BY r.path
    ON CONFLICT (collection_id, path) DO NOTHING;
    RETURN QUERY
    SELECT s.*
    FROM pgsimhash.sources AS s
    WHERE s.collection_id = own_id
        AND s.path = ANY (paths)
        AND (
            s.page_id IS NULL
            OR EXISTS (
                SELECT FROM pgsimhash.pages AS p
                WHERE p.collection_id = s.collection_id AND p.page_id = s.page_id
            )
        );
END
$$;

-- Updates rows; those that an undo deleted stay deleted.
CREATE FUNCTION pgsimhash._put_sources(own_id integer, rows jsonb) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pgsimhash.sources AS s
    SET size = r.size, modified_ns = r.modified_ns, last_record = r.last_record, failed = r.failed,
        page_id = r.page_id
    FROM jsonb_populate_recordset(NULL::pgsimhash.sources, rows) AS r
    WHERE s.collection_id = own_id AND s.path = r.path;
END
$$;
