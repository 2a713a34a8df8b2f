-- Replaces the damaged ranking of a template's board by one without bucket rows, which is read from the
-- players; centile_store.grow_board gives it bucket rows again. Returns NULL if another session has done so,
-- or if the period was closed.
CREATE OR REPLACE FUNCTION centile_store.shrink_ranking(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_ranking centile_store.rankings;
BEGIN
    SELECT * INTO STRICT v_ranking FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    PERFORM centile_store.lock_buckets(v_ranking.board_id);
    PERFORM centile_store.lock_structure(v_ranking.board_id, true);
    UPDATE centile_store.rankings g SET released_at = clock_timestamp()
    WHERE g.id = p_ranking_id AND g.players_of <> g.board_id AND g.released_at IS NULL AND g.damaged_at IS NOT NULL;
    IF FOUND THEN
        RETURN centile_store.add_rankings(v_ranking.board_id, ARRAY[v_ranking.period_id], ARRAY[v_ranking.players_of]);
    END IF;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION centile_store.shrink_ranking(bigint) IS
'Replaces a damaged ranking of a template''s board, and returns the new one. Example: SELECT centile_store.shrink_ranking(1) IS NULL AS is_sound;';
