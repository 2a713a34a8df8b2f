-- An imported event may lie before a reset that is already in the ledger, where it does not count; whoever was ever reset
-- is looked up in the ledger again.
CREATE FUNCTION centile_store.recompute_reset_players(
    p_board centile_store.boards, p_lane smallint, p_users bigint[], p_times timestamptz[], p_outcomes text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_player record;
BEGIN
    FOR v_player IN
        SELECT e.user_id, array_agg(DISTINCT p.ranking_id) AS ranking_ids
        FROM unnest(p_users, p_times, p_outcomes) AS e (user_id, at, outcome)
        JOIN centile_store.board_players b ON b.board_id = p_board.id AND b.user_id = e.user_id AND b.was_reset
        CROSS JOIN LATERAL centile_store.periods_at(p_board.id, p_board.periods, e.at) p
        WHERE e.outcome IS NULL
        GROUP BY e.user_id
    LOOP
        PERFORM centile_store.recompute_entries(p_lane, v_player.ranking_ids, ARRAY[v_player.user_id]);
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.recompute_reset_players(centile_store.boards, smallint, bigint[], timestamptz[], text[]) IS
'After an import: entries of players who were ever reset, from the ledger. Example: SELECT centile_store.recompute_reset_players(b, 0::smallint, ''{1}'', ''{2024-01-15 12:00Z}'', ''{NULL}'') FROM centile_store.boards b WHERE b.slug = ''main'';';
