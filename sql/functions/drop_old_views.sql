-- Statements that began before a refresh may still read the view that it has replaced, so the view
-- stays for a while.
CREATE OR REPLACE FUNCTION centile_store.drop_old_views(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Does not wait for a reader, such as a session left open; the next attempt drops the view.
SET lock_timeout = '200ms'
AS $$
DECLARE
    v_views text[];
    v_view  text;
BEGIN
    SELECT c.old_views INTO v_views
    FROM centile_store.combinations c JOIN centile_store.periods p ON p.board_id = c.board_id
    WHERE c.board_id = p_board_id AND p.closed_at < statement_timestamp() - interval '10 seconds';
    FOREACH v_view IN ARRAY coalesce(v_views, '{}') LOOP
        EXECUTE format('DROP MATERIALIZED VIEW IF EXISTS centile_archive.%I', v_view);
        UPDATE centile_store.combinations c SET old_views = array_remove(c.old_views, v_view) WHERE c.board_id = p_board_id;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.drop_old_views(integer) IS
'Drops the replaced views of a combined board that no statement reads any more. Example: SELECT centile_store.drop_old_views(4);';
