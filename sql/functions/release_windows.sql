-- Windows that are over and are not to be archived, and those of a length that the board no longer
-- keeps. Handles one board per call; call it until it returns 0.
CREATE OR REPLACE FUNCTION centile_store.release_windows() RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board_id integer;
    v_ids      bigint[];
    v_released integer;
BEGIN
    SELECT x.board_id, array_agg(x.id) INTO v_board_id, v_ids
    FROM (SELECT p.board_id, p.id FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
          WHERE p.kind = 'rolling' AND p.state <> 'closed' AND p.cut_off_at IS NULL
            AND (split_part(p.label, '-', 1) <> ALL (b.rolling)
                 OR (p.ends_at <= statement_timestamp() AND (p.state = 'preparing' OR NOT b.kept_archives ? 'rolling')))) x
    GROUP BY x.board_id ORDER BY x.board_id LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM centile_store.lock_structure(v_board_id, true);
    -- The rankings first, while the periods still name them.
    UPDATE centile_store.rankings g SET released_at = clock_timestamp()
    FROM centile_store.periods p WHERE p.id = ANY (v_ids) AND g.id = p.ranking_id AND p.cut_off_at IS NULL;
    UPDATE centile_store.periods p SET state = 'closed', ranking_id = NULL, closed_at = clock_timestamp()
    WHERE p.id = ANY (v_ids) AND p.state <> 'closed' AND p.cut_off_at IS NULL;
    GET DIAGNOSTICS v_released = ROW_COUNT;
    RETURN v_released;
END
$$;

COMMENT ON FUNCTION centile_store.release_windows() IS
'Releases rolling windows that are no longer current, and returns their number. Example: SELECT centile_store.release_windows();';
