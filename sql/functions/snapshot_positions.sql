-- For the positions that players have gained since then. Players who are not in it have no row.
CREATE OR REPLACE FUNCTION centile_store.snapshot_positions(p_board_id integer, p_users text[]) RETURNS TABLE (user_id text, "position" bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive text := (
        SELECT p.archive_name FROM centile_store.periods p
        WHERE p.board_id = p_board_id AND p.kind = 'snapshot' AND p.frozen_top IS NOT NULL
        ORDER BY p.ends_at DESC LIMIT 1);
BEGIN
    IF v_archive IS NOT NULL THEN
        RETURN QUERY EXECUTE format(
            'SELECT u.external_id, a."position" FROM centile_store.users u JOIN centile_archive.%I a ON a.user_id = u.id
             WHERE u.external_id = ANY ($1)', v_archive)
        USING p_users;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.snapshot_positions(integer, text[]) IS
'Positions of players in the newest snapshot of a board. Example: SELECT * FROM centile_store.snapshot_positions(1, ''{ann}'');';
