-- Callers have the owner's rights.
CREATE OR REPLACE FUNCTION centile_store.remove_archive(p_name text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_kind "char" := (SELECT c.relkind FROM pg_catalog.pg_class c
                      WHERE c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p_name AND c.relkind IN ('m', 'r'));
BEGIN
    IF v_kind IS NOT NULL THEN
        EXECUTE format('DROP %s centile_archive.%I', CASE v_kind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, p_name);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.remove_archive(text) IS
'Drops an archive, a materialized view or a table, if it exists. Example: SELECT centile_store.remove_archive(''main_day_2024_01_15'');';
