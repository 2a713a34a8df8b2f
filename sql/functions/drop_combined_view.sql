-- The function runs with the owner's rights, and the service may write any name into the table. So
-- the view's own definition must name the board.
CREATE OR REPLACE FUNCTION centile_store.drop_combined_view(p_board_id integer, p_name text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_view pg_catalog.pg_class;
BEGIN
    SELECT * INTO v_view FROM pg_catalog.pg_class c WHERE c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p_name;
    IF NOT FOUND THEN
        RETURN;
    ELSIF v_view.relkind <> 'm' OR position(format('centile_store.combined_ranking(%s)', p_board_id) IN pg_get_viewdef(v_view.oid)) = 0
       OR EXISTS (SELECT FROM centile_store.periods p WHERE p.archive_name = p_name) THEN
        RAISE EXCEPTION '%', format('centile_archive.%I is in use, or Centile did not create it for this board', p_name) USING ERRCODE = 'CB409';
    END IF;
    EXECUTE format('DROP MATERIALIZED VIEW centile_archive.%I', p_name);
END
$$;

COMMENT ON FUNCTION centile_store.drop_combined_view(integer, text) IS
'Drops a view that a combined board no longer uses, and refuses any other. Example: SELECT centile_store.drop_combined_view(4, ''hero_combined_99'');';
