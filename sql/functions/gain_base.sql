-- For best and latest boards: the player's best (latest) score before p_starts_at, otherwise the
-- first since; NULL without either. Events before p_since, the last reset, and those in p_voided do
-- not count. On best boards any earlier score of at least p_enough is sufficient: it shows that the
-- gain is not too large. Only without one is the whole history read.
CREATE OR REPLACE FUNCTION centile_store.gain_base(
    p_board centile_store.boards, p_board_id integer, p_user_id bigint, p_starts_at timestamptz, p_since timestamptz, p_voided bigint[], p_enough bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN coalesce(
        CASE WHEN p_board.mode = 'best' THEN coalesce(
            (SELECT centile.rank_key(t.points, p_board.score_order) FROM centile_store.score_transactions t
             WHERE t.board_id = p_board_id AND t.user_id = p_user_id AND t.kind = 'score' AND t.id <> ALL (p_voided)
               AND t.occurred_at >= p_since AND t.occurred_at < p_starts_at
               AND centile.rank_key(t.points, p_board.score_order) >= p_enough LIMIT 1),
            (SELECT max(centile.rank_key(t.points, p_board.score_order)) FROM centile_store.score_transactions t
             WHERE t.board_id = p_board_id AND t.user_id = p_user_id AND t.kind = 'score' AND t.id <> ALL (p_voided)
               AND t.occurred_at >= p_since AND t.occurred_at < p_starts_at))
        ELSE
            (SELECT centile.rank_key(t.points, p_board.score_order) FROM centile_store.score_transactions t
             WHERE t.board_id = p_board_id AND t.user_id = p_user_id AND t.kind = 'score' AND t.id <> ALL (p_voided)
               AND t.occurred_at >= p_since AND t.occurred_at < p_starts_at
             ORDER BY t.occurred_at DESC, t.id DESC LIMIT 1)
        END,
        (SELECT centile.rank_key(t.points, p_board.score_order) FROM centile_store.score_transactions t
         WHERE t.board_id = p_board_id AND t.user_id = p_user_id AND t.kind = 'score' AND t.id <> ALL (p_voided)
           AND t.occurred_at >= greatest(p_since, p_starts_at)
         ORDER BY t.occurred_at, t.id LIMIT 1));
END
$$;

COMMENT ON FUNCTION centile_store.gain_base(centile_store.boards, integer, bigint, timestamptz, timestamptz, bigint[], bigint) IS
'The rank key from which a player''s gain in a period is counted. Example: SELECT centile_store.gain_base(b, b.id, 1, ''-infinity'', ''-infinity'', ''{}'', 0) FROM centile_store.boards b WHERE b.slug = ''main'';';
