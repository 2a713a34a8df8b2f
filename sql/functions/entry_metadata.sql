-- Finds the event that decides each entry by the entry's user, time and score. sum: the latest event
-- with points other than 0. best: of several at this time, the one with the best tiebreak. latest:
-- the one with the greatest id. With ties `second` an entry has no time: the latest event of its
-- period decides, on best boards the latest with this score and tiebreak.
--
-- Entry n is the n-th of all arrays. p_kinds, p_labels, p_segments: the entry's period, if it is closed
-- or the entry has no time; NULL for others. Events and voids after the cut-off do not count in an
-- archive. Entries without metadata and those of erased players have no row.
CREATE OR REPLACE FUNCTION centile_store.entry_metadata(
    p_board_ids integer[], p_kinds text[], p_labels text[], p_users text[], p_times timestamptz[], p_scores bigint[],
    p_segments text[] DEFAULT NULL, p_tiebreaks bigint[] DEFAULT NULL)
RETURNS TABLE (n bigint, metadata json)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT e.n, t.metadata
    FROM unnest(p_board_ids, p_kinds, p_labels, p_users, p_times, p_scores, p_segments) WITH ORDINALITY AS e (board_id, kind, label, external_id, at, score, segment, n)
    CROSS JOIN LATERAL (SELECT b.id, b.mode FROM centile_store.boards b WHERE b.id = centile_store.owner_of(e.board_id) LIMIT 1) b
    CROSS JOIN LATERAL (SELECT u.id FROM centile_store.users u WHERE u.external_id = e.external_id AND u.erased_at IS NULL LIMIT 1) u
    LEFT JOIN LATERAL (
        SELECT c.batches FROM centile_store.periods p JOIN centile_store.cut_offs c ON c.period_id = p.id
        WHERE p.board_id = b.id AND p.kind = e.kind AND p.label = e.label AND p.segment = coalesce(e.segment, '') LIMIT 1) c ON true
    CROSS JOIN LATERAL (
        SELECT t.metadata FROM centile_store.score_transactions t
        WHERE t.board_id = e.board_id AND t.user_id = u.id AND t.occurred_at = e.at AND t.kind = 'score'
          AND (b.mode = 'sum' OR t.points = e.score)
          AND (c.batches IS NULL OR t.batch <= c.batches[t.lane + 1])
          -- A void is never before its score.
          AND NOT EXISTS (
              SELECT FROM centile_store.score_transactions v
              WHERE v.board_id = e.board_id AND v.user_id = u.id AND v.kind = 'void' AND v.voids_id = t.id AND v.occurred_at >= e.at
                AND (c.batches IS NULL OR v.batch <= c.batches[v.lane + 1]))
        ORDER BY CASE b.mode WHEN 'sum' THEN t.points <> 0 END DESC,
                 CASE b.mode WHEN 'best' THEN coalesce(t.tiebreak, 0) END DESC,
                 CASE b.mode WHEN 'best' THEN -t.id ELSE t.id END DESC
        LIMIT 1) t
    WHERE t.metadata IS NOT NULL;
    IF array_position(p_times, NULL) IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT e.n, t.metadata
    FROM unnest(p_board_ids, p_kinds, p_labels, p_users, p_times, p_scores, p_segments, p_tiebreaks) WITH ORDINALITY AS e (board_id, kind, label, external_id, at, score, segment, tiebreak, n)
    CROSS JOIN LATERAL (SELECT b.id, b.mode FROM centile_store.boards b WHERE b.id = centile_store.owner_of(e.board_id) LIMIT 1) b
    CROSS JOIN LATERAL (SELECT u.id FROM centile_store.users u WHERE u.external_id = e.external_id AND u.erased_at IS NULL LIMIT 1) u
    CROSS JOIN LATERAL (
        -- The live ranking of a period that is being closed has later events.
        SELECT p.starts_at, p.ends_at, CASE p.state WHEN 'closed' THEN c.batches END AS batches
        FROM centile_store.periods p LEFT JOIN centile_store.cut_offs c ON c.period_id = p.id
        WHERE p.board_id = b.id AND p.kind = e.kind AND p.label = e.label AND p.segment = coalesce(e.segment, '') LIMIT 1) c
    CROSS JOIN LATERAL (
        SELECT t.metadata FROM centile_store.score_transactions t
        WHERE t.board_id = e.board_id AND t.user_id = u.id AND t.occurred_at >= c.starts_at AND t.occurred_at < c.ends_at AND t.kind = 'score'
          AND (b.mode = 'sum' OR t.points = e.score)
          AND (b.mode <> 'best' OR coalesce(t.second_number, 0) = e.tiebreak)
          AND (c.batches IS NULL OR t.batch <= c.batches[t.lane + 1])
          AND NOT EXISTS (
              SELECT FROM centile_store.score_transactions v
              WHERE v.board_id = e.board_id AND v.user_id = u.id AND v.kind = 'void' AND v.voids_id = t.id AND v.occurred_at >= c.starts_at
                AND (c.batches IS NULL OR v.batch <= c.batches[v.lane + 1]))
        ORDER BY t.occurred_at DESC, t.id DESC
        LIMIT 1) t
    WHERE e.at IS NULL AND t.metadata IS NOT NULL;
END
$$;

COMMENT ON FUNCTION centile_store.entry_metadata(integer[], text[], text[], text[], timestamptz[], bigint[], text[], bigint[]) IS
'Metadata of the events that decide entries. Example: SELECT m.metadata FROM centile.standings s CROSS JOIN LATERAL centile_store.entry_metadata(''{1}'', NULL, NULL, ARRAY[s.user_id], ARRAY[s.reached_at], ARRAY[s.score]) m WHERE s.board = ''main'' AND s.kind = ''all_time'';';
