-- The archive that answers for a closed period, with the rules of its board; no row unless the period is closed and its
-- archive kept. The archive's name comes from here, never from a caller.
CREATE OR REPLACE FUNCTION centile_store.archive_of(p_period_id bigint)
RETURNS TABLE (archive_name text, players bigint, board_id integer, score_order text, ties text, mode text)
LANGUAGE sql STABLE
AS $$
    SELECT p.archive_name, p.archive_players, b.id, b.score_order, b.ties, b.mode
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.id = p_period_id AND p.state = 'closed' AND p.archive_revision > 0 AND p.archive_dropped_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.archive_of(bigint) IS
'The archive of a closed period and the rules of its board. Example: SELECT * FROM centile_store.archive_of(2);';
