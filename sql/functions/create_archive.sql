-- p_kind: MATERIALIZED VIEW or TABLE. Callers have the owner's rights.
CREATE OR REPLACE FUNCTION centile_store.create_archive(p_period_id bigint, p_name text, p_kind text, p_query text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    -- Short, because the archive's name may have the maximum length.
    v_index text := 'archive_' || p_period_id || CASE p_kind WHEN 'TABLE' THEN '_table' ELSE '' END;
BEGIN
    EXECUTE format('CREATE %s centile_archive.%I AS %s', p_kind, p_name, p_query);
    EXECUTE format('CREATE UNIQUE INDEX %I ON centile_archive.%I ("position")', v_index || '_position', p_name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON centile_archive.%I (user_id)', v_index || '_user', p_name);
    EXECUTE format('CREATE INDEX %I ON centile_archive.%I (rank)', v_index || '_rank', p_name);
    PERFORM centile_store.comment_archive(p_period_id, p_name, p_kind);
    EXECUTE format('GRANT SELECT ON centile_archive.%I TO centile_reader, centile_service', p_name);
    EXECUTE format('ANALYZE centile_archive.%I', p_name);
END
$$;

COMMENT ON FUNCTION centile_store.create_archive(bigint, text, text, text) IS
'Creates an archive with its indexes, comment and rights. Example: SELECT centile_store.create_archive(2, ''trial'', ''TABLE'', centile_store.archive_query(2));';
