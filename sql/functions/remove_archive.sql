-- Callers have the owner's rights.
CREATE OR REPLACE FUNCTION centile_store.remove_archive(p_period_id bigint, p_name text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_kind "char" := centile_store.archive_kind(p_period_id, p_name);
BEGIN
    IF v_kind IS NOT NULL THEN
        EXECUTE format('DROP %s centile_archive.%I', CASE v_kind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, p_name);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.remove_archive(bigint, text) IS
'Drops the archive of a period, a materialized view or a table, if it exists. Example: SELECT centile_store.remove_archive(2, ''main_day_2024_01_15'');';
