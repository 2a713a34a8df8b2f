-- Statements that began before a refresh may still read the view that it has replaced, so the newest
-- one stays for ten seconds. Also drops the view of a refresh that was interrupted before its second
-- step. The caller holds the lock of refreshes.
CREATE OR REPLACE FUNCTION centile_store.drop_old_views(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Does not wait for a reader, such as a session left open; the next attempt drops the view.
SET lock_timeout = '200ms'
AS $$
DECLARE
    v_state centile_store.combinations;
    v_views text[];
    v_view  text;
BEGIN
    SELECT * INTO STRICT v_state FROM centile_store.combinations c WHERE c.board_id = p_board_id;
    v_views := v_state.old_views;
    IF NOT EXISTS (SELECT FROM centile_store.periods p
                   WHERE p.board_id = p_board_id AND p.closed_at < statement_timestamp() - interval '10 seconds') THEN
        v_views := trim_array(v_views, least(1, cardinality(v_views)));
    END IF;
    FOREACH v_view IN ARRAY array_remove(v_views || v_state.next_view, NULL) LOOP
        BEGIN
            PERFORM centile_store.drop_combined_view(p_board_id, v_view);
            UPDATE centile_store.combinations c
            SET old_views = array_remove(c.old_views, v_view), next_view = nullif(c.next_view, v_view)
            WHERE c.board_id = p_board_id;
        EXCEPTION
            WHEN lock_not_available THEN NULL;
        END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.drop_old_views(integer) IS
'Drops the replaced views of a combined board, the newest one only ten seconds after the refresh. Example: SELECT centile_store.drop_old_views(4);';
