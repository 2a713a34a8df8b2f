-- No ranking yet: reads are refused, and scores do not enter it. Readers and writers need not wait
-- for this. The board may have removed the window and wants it again.
CREATE OR REPLACE FUNCTION centile_store.open_window(p_board_id integer, p_label text, p_starts_at timestamptz, p_ends_at timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state)
    VALUES (p_board_id, 'rolling', p_label, p_starts_at, p_ends_at, 'preparing')
    ON CONFLICT ON CONSTRAINT periods_label_key DO UPDATE SET state = 'preparing', closed_at = NULL WHERE periods.state = 'closed';
    RETURN (SELECT p.id FROM centile_store.periods p WHERE p.board_id = p_board_id AND p.kind = 'rolling' AND p.label = p_label);
END
$$;

COMMENT ON FUNCTION centile_store.open_window(integer, text, timestamptz, timestamptz) IS
'Makes a rolling window that is to be filled from the ledger, and returns its period id. Example: SELECT centile_store.open_window(1, ''7d-2024-01-21'', ''2024-01-15'', ''2024-01-22'') IS NOT NULL AS is_made;';
