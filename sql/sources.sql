-- The ingested files, and which of their records a rerun skips.

-- A single page that was deleted since counts as not stored.
CREATE FUNCTION pgsimhash._sources(collection_id integer, paths text[]) RETURNS TABLE (
    path text, size bigint, modified_ns bigint, last_record bigint, failed bigint[], page_id bigint
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.path, s.size, s.modified_ns, s.last_record, s.failed, s.page_id
    FROM pgsimhash.sources AS s
    WHERE s.collection_id = _sources.collection_id
        AND s.path = ANY (_sources.paths)
        AND (
            s.page_id IS NULL
            OR EXISTS (
                SELECT FROM pgsimhash.pages AS p
                WHERE p.collection_id = s.collection_id AND p.page_id = s.page_id
            )
        );
END
$$;

-- Only those that still exist.
CREATE FUNCTION pgsimhash._see_known_pages(collection_id integer, page_ids bigint[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM pgsimhash._see_pages(
        _see_known_pages.collection_id,
        ARRAY(
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = _see_known_pages.collection_id
                AND p.page_id = ANY (_see_known_pages.page_ids)
        ),
        NULL
    );
END
$$;

-- Before the first page of a file is stored: an undo deletes the row, also of a job that goes on.
CREATE FUNCTION pgsimhash._begin_sources(collection_id integer, rows jsonb) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO pgsimhash.sources (collection_id, path, size, modified_ns, last_record, failed)
    SELECT _begin_sources.collection_id, r.path, r.size, r.modified_ns, 0, '{}'
    FROM jsonb_to_recordset(_begin_sources.rows) AS r (path text, size bigint, modified_ns bigint)
    ORDER BY r.path
    ON CONFLICT (collection_id, path) DO NOTHING;
END
$$;

-- Not of files whose row an undo deleted.
CREATE FUNCTION pgsimhash._put_sources(collection_id integer, rows jsonb) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO pgsimhash.sources AS s (
        collection_id, path, size, modified_ns, last_record, failed, page_id
    )
    SELECT _put_sources.collection_id, r.path, r.size, r.modified_ns, r.last_record, r.failed, r.page_id
    FROM jsonb_to_recordset(_put_sources.rows) AS r (
        path text, size bigint, modified_ns bigint, last_record bigint, failed bigint[], page_id bigint
    )
    WHERE EXISTS (
        SELECT FROM pgsimhash.sources AS b
        WHERE b.collection_id = _put_sources.collection_id AND b.path = r.path
    )
    ON CONFLICT (collection_id, path) DO UPDATE SET
        size = excluded.size,
        modified_ns = excluded.modified_ns,
        last_record = excluded.last_record,
        failed = excluded.failed,
        page_id = excluded.page_id;
END
$$;

-- Which of their records the run stored is unknown. Files with one page have its page_id.
CREATE FUNCTION pgsimhash._forget_archives(collection_id integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM pgsimhash.sources
    WHERE collection_id = _forget_archives.collection_id AND page_id IS NULL;
END
$$;
