-- Every answer about a closed period contains these values. The row also proves that the archive
-- still exists at this revision, and belongs to the period that the caller means. After a restore
-- the ids may be another board's, so the board is checked too.
CREATE OR REPLACE FUNCTION centile_store.archive_state(p_board_id integer, p_period_id bigint, p_revision integer, p_from timestamptz, p_until timestamptz)
RETURNS TABLE (epoch text, players bigint, revision bigint, frozen_size integer)
LANGUAGE sql STABLE
AS $$
    SELECT centile.epoch(), coalesce(c.players, p.archive_players), (SELECT v.revision FROM centile_store.profile_revision v), b.frozen_top_size
    FROM (SELECT) one
    LEFT JOIN LATERAL centile_store.closed_row(p_period_id) c ON true
    JOIN centile_store.periods p ON p.id = coalesce(c.period_id, p_period_id)
    JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.board_id = p_board_id
      AND p.state = 'closed' AND coalesce(c.archive_revision, p.archive_revision) = p_revision AND p.archive_dropped_at IS NULL
      AND (p_from IS NULL OR p_from <= statement_timestamp()) AND (p_until IS NULL OR statement_timestamp() < p_until)
$$;

COMMENT ON FUNCTION centile_store.archive_state(integer, bigint, integer, timestamptz, timestamptz) IS
'Epoch, players, profile revision and size of the frozen top of a closed period, if its archive is still at this revision. Example: SELECT players FROM centile_store.archive_state(1, 2, 1, NULL, NULL);';
