-- Reads one row of each archive. A snapshot without the player has a NULL position.
CREATE OR REPLACE FUNCTION centile.progress(p_board text, p_user text, p_limit integer DEFAULT 30)
RETURNS TABLE (label text, ends_at timestamptz, players bigint, "position" bigint, rank bigint, score bigint, reached_at timestamptz, tier text, tiebreak bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_board    centile_store.boards := centile_store.board_named(p_board);
    v_user_id  bigint := centile_store.user_named(p_user);
    v_period   centile_store.periods;
BEGIN
    FOR v_period IN
        SELECT p.* FROM centile_store.periods p
        WHERE p.board_id = v_board.id AND p.kind = 'snapshot' AND p.frozen_top IS NOT NULL
        ORDER BY p.ends_at DESC LIMIT greatest(p_limit, 0)
    LOOP
        BEGIN
            RETURN QUERY EXECUTE format(
                'SELECT $2, $3, $4, a."position", a.rank, a.score, a.reached_at,
                        CASE WHEN a.rank IS NOT NULL THEN centile.tier_of($5, $6, a.score, a.rank, $4) END, %s
                 FROM (SELECT) one LEFT JOIN centile_archive.%I a ON a.user_id = $1', CASE v_board.ties WHEN 'second' THEN 'a.tiebreak' ELSE 'NULL::bigint' END, v_period.archive_name)
            USING v_user_id, v_period.label, v_period.ends_at, v_period.archive_players, v_period.tiers, v_board.score_order;
        EXCEPTION WHEN undefined_table THEN
            -- The board keeps fewer snapshots, and this one was dropped just now.
            CONTINUE;
        END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile.progress(text, text, integer) IS
'A player''s rank, score and tier in the newest snapshots of a board, newest first. Example: SELECT label, players, rank, score FROM centile.progress(''main'', ''ann'');';
GRANT EXECUTE ON FUNCTION centile.progress(text, text, integer) TO centile_reader;
