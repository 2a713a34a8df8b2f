-- Segments of a closed period whose archives lack a correction, or a ban or unban of one of their
-- players that the archive of the period contains. Bans and unbans do not mark closed periods, so
-- the ledger is searched for them.
CREATE OR REPLACE FUNCTION centile_store.outdated_segments(p_period_id bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE
AS $$
    SELECT s.id FROM centile_store.periods w
    JOIN centile_store.periods s ON s.board_id = w.board_id AND s.kind = w.kind AND s.label = w.label
    JOIN centile_store.cut_offs wc ON wc.period_id = w.id
    WHERE w.id = p_period_id AND w.segment = '' AND s.segment <> '' AND s.frozen_top IS NOT NULL
      AND (s.corrected_at IS NOT NULL OR EXISTS (
          SELECT FROM centile_store.score_transactions t
          JOIN centile_store.cut_offs c ON c.period_id = s.id
          WHERE t.board_id = s.board_id AND t.kind IN ('ban', 'unban') AND t.batch > c.batches[t.lane + 1] AND t.batch <= wc.batches[t.lane + 1]
            AND EXISTS (SELECT FROM centile_store.segment_members m
                        WHERE m.board_id = s.board_id AND m.user_id = t.user_id AND m.segment = s.segment)))
    ORDER BY s.id
$$;

COMMENT ON FUNCTION centile_store.outdated_segments(bigint) IS
'Segments of a closed period whose archives must be refreshed after it. Example: SELECT * FROM centile_store.outdated_segments(4);';
