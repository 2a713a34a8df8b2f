-- The score, as a rank key, from which a player's gain in a period of a best or latest board is counted: the player's best (latest)
-- from before p_starts_at, and for want of one the first since; NULL when there is none either. Events before p_since, the last
-- reset, and those that p_voided names do not count.
--
-- On best boards any score of before that is p_enough or better does: what is asked is whether the gain is too large, and the
-- whole past is read only where it is.
CREATE OR REPLACE FUNCTION centile_store.gain_base(
    p_board centile_store.boards, p_user_id bigint, p_starts_at timestamptz, p_since timestamptz, p_voided bigint[], p_enough bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_base bigint;
BEGIN
    IF p_board.mode = 'best' THEN
        SELECT centile.rank_key(t.points, p_board.score_order) INTO v_base
        FROM centile_store.score_transactions t
        WHERE t.board_id = p_board.id AND t.user_id = p_user_id AND t.kind = 'score'
          AND t.occurred_at >= p_since AND t.occurred_at < p_starts_at
          AND centile.rank_key(t.points, p_board.score_order) >= p_enough
          AND t.id <> ALL (p_voided)
        LIMIT 1;
        IF v_base IS NULL THEN
            SELECT max(centile.rank_key(t.points, p_board.score_order)) INTO v_base
            FROM centile_store.score_transactions t
            WHERE t.board_id = p_board.id AND t.user_id = p_user_id AND t.kind = 'score'
              AND t.occurred_at >= p_since AND t.occurred_at < p_starts_at
              AND t.id <> ALL (p_voided);
        END IF;
    ELSE
        SELECT centile.rank_key(t.points, p_board.score_order) INTO v_base
        FROM centile_store.score_transactions t
        WHERE t.board_id = p_board.id AND t.user_id = p_user_id AND t.kind = 'score'
          AND t.occurred_at >= p_since AND t.occurred_at < p_starts_at
          AND t.id <> ALL (p_voided)
        ORDER BY t.occurred_at DESC, t.id DESC LIMIT 1;
    END IF;
    IF v_base IS NULL THEN
        SELECT centile.rank_key(t.points, p_board.score_order) INTO v_base
        FROM centile_store.score_transactions t
        WHERE t.board_id = p_board.id AND t.user_id = p_user_id AND t.kind = 'score'
          AND t.occurred_at >= greatest(p_since, p_starts_at)
          AND t.id <> ALL (p_voided)
        ORDER BY t.occurred_at, t.id LIMIT 1;
    END IF;
    RETURN v_base;
END
$$;

COMMENT ON FUNCTION centile_store.gain_base(centile_store.boards, bigint, timestamptz, timestamptz, bigint[], bigint) IS
'The rank key from which a player''s gain in a period is counted. Example: SELECT centile_store.gain_base(b, 1, ''-infinity'', ''-infinity'', ''{}'', 0) FROM centile_store.boards b WHERE b.slug = ''main'';';
