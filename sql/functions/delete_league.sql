-- centile_store.remove_leagues removes its rows later.
CREATE OR REPLACE FUNCTION centile.delete_league(p_name text, p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_league centile_store.leagues := centile_store.league_named(p_name);
BEGIN
    PERFORM centile_store.lock_structure(v_league.board_id, true);
    v_league := centile_store.league_named(p_name);
    UPDATE centile_store.leagues l SET deleted_at = clock_timestamp() WHERE l.id = v_league.id;
    UPDATE centile_store.boards b SET has_league = false WHERE b.id = v_league.board_id;
    PERFORM centile_store.note_act(p_actor, 'delete_league', v_league.board_id, '{"deleted": false}', '{"deleted": true}', p_name);
    RETURN v_league.id;
END
$$;

COMMENT ON FUNCTION centile.delete_league(text, text) IS
'Deletes a league with its history, and returns its id. Example: SELECT centile.delete_league(''months'') > 0 AS is_deleted;';
