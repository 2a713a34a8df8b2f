-- Creates the window without a ranking, so reads fail and scores do not enter it. Also reopens a
-- window that the board had released. NULL if it is open, another session is filling it, or the board
-- no longer wants it.
CREATE OR REPLACE FUNCTION centile_store.open_window(p_board_id integer, p_length text, p_at timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    -- The rules of the board stay as they are.
    v_board  centile_store.boards := centile_store.lock_structure(p_board_id, false);
    v_window record;
    v_id     bigint;
BEGIN
    SELECT w.* INTO v_window FROM centile.rolling_window(p_length, p_at, v_board.time_zone) w WHERE p_length = ANY (v_board.rolling);
    INSERT INTO centile_store.periods AS p (board_id, kind, label, starts_at, ends_at, state)
    SELECT p_board_id, 'rolling', v_window.label, v_window.starts_at, v_window.ends_at, 'preparing' WHERE v_window.label IS NOT NULL
    ON CONFLICT ON CONSTRAINT periods_label_key DO UPDATE
    SET state = 'preparing', starts_at = excluded.starts_at, ends_at = excluded.ends_at, closed_at = NULL, archive_dropped_at = NULL
    WHERE p.state <> 'open' AND p.cut_off_at IS NULL
      AND NOT EXISTS (SELECT FROM centile_store.rankings g
                      WHERE g.period_id = p.id AND g.released_at IS NULL AND centile_store.is_locked(1128615510, g.id))
    RETURNING p.id INTO v_id;
    RETURN v_id;
END
$$;

COMMENT ON FUNCTION centile_store.open_window(integer, text, timestamptz) IS
'Creates the rolling window that is current at an instant, and returns its period id. Example: SELECT centile_store.open_window(1, ''7d'', now()) IS NOT NULL AS is_created;';
