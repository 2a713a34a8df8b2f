-- Call it after an act that has changed a sum by p_change, and a sum of second numbers by
-- p_second_change. Includes the sums of banned players, because an unban restores them. An act may
-- bring a sum that is out of range closer to it.
CREATE OR REPLACE FUNCTION centile_store.check_sum(p_board centile_store.boards, p_user_id bigint, p_at timestamptz, p_change bigint, p_second_change bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_board.mode = 'sum' AND EXISTS (
        -- A segment has the sum of its whole period.
        SELECT FROM centile_store.periods_at(centile_store.owner_of(p_board.id), p_board.periods, p_at) w
        JOIN centile_store.periods p ON p.id = w.period_id
        CROSS JOIN LATERAL (
            SELECT sum(t.points) AS score, CASE p_board.tiebreak_sum WHEN 'added' THEN sum(t.second_number) END AS second_number FROM centile_store.score_transactions t
            WHERE t.board_id = p_board.id AND t.user_id = p_user_id AND t.kind = 'score' AND t.occurred_at < p.ends_at
              AND t.occurred_at >= greatest(p.starts_at, (
                  SELECT max(r.occurred_at) FROM centile_store.score_transactions r
                  WHERE r.board_id = p_board.id AND r.user_id = p_user_id AND r.kind = 'reset'
                    AND r.occurred_at >= p.starts_at AND r.occurred_at < p.ends_at))
              AND NOT EXISTS (SELECT FROM centile_store.score_transactions v
                              WHERE v.board_id = p_board.id AND v.user_id = p_user_id AND v.kind = 'void' AND v.voids_id = t.id)) s
        WHERE abs(s.score) > 9223372036854775807 AND abs(s.score) > abs(s.score - p_change)
           OR abs(s.second_number) > 9223372036854775807 AND abs(s.second_number) > abs(s.second_number - p_second_change)) THEN
        RAISE EXCEPTION 'the score% would leave the range of 64 bits', CASE p_board.ties WHEN 'second' THEN ' or the second number' ELSE '' END USING ERRCODE = 'numeric_value_out_of_range';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_sum(centile_store.boards, bigint, timestamptz, bigint, bigint) IS
'Raises an error if a player''s sum exceeds 64 bits, after an act, in a period that contains a time. Example: SELECT centile_store.check_sum(b, 1, now(), 5) FROM centile_store.boards b WHERE b.slug = ''main'';';
