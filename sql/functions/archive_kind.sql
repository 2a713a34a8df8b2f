-- An archive is recognized by the name of its index. The service may write any name into the table
-- of periods, but cannot rename an index.
CREATE OR REPLACE FUNCTION centile_store.archive_kind(p_period_id bigint, p_name text) RETURNS "char"
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_relation record;
BEGIN
    SELECT c.relkind, EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
                              WHERE i.indrelid = c.oid AND x.relname IN (format('archive_%s_user', p_period_id), format('archive_%s_table_user', p_period_id))) AS is_archive
    INTO v_relation FROM pg_catalog.pg_class c WHERE c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p_name;
    IF NOT v_relation.is_archive THEN
        RAISE EXCEPTION '%', format('centile_archive.%I has the name of an archive, but Centile did not create it for this period', p_name)
            USING ERRCODE = 'CB409', HINT = 'Rename or drop it.';
    END IF;
    RETURN v_relation.relkind;
END
$$;

COMMENT ON FUNCTION centile_store.archive_kind(bigint, text) IS
'Whether the archive of a period is a materialized view (m) or a table (r), NULL if there is none; an error if the name is that of another relation. Example: SELECT centile_store.archive_kind(p.period_id, ''main_week_2024_01_15'') FROM centile.periods p WHERE p.archive = ''centile_archive.main_week_2024_01_15'';';
