-- Standings on a board with ties `second` have no times. Where the latest event decides the score or
-- the second number, an earlier imported event must change neither, so an import needs the time of the
-- deciding event. p_boards has the board of each player; user_places are places in p_user_ids,
-- from 1.
--
-- Resets do not matter here: they are later than the events that they remove, and an imported event
-- from before the player's last reset does not count in any case.
--
-- On boards with tiebreak_sum `replaced`, reads back to the player's latest event with a tiebreak.
CREATE OR REPLACE FUNCTION centile_store.deciding_times(p_board centile_store.boards, p_boards integer[], p_user_ids bigint[], p_period_ids bigint[],
    OUT user_places integer[], OUT period_ids bigint[], OUT times timestamptz[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(u.place::integer), array_agg(p.id), array_agg(t.occurred_at)
    FROM unnest(p_user_ids) WITH ORDINALITY AS u (id, place)
    JOIN centile_store.players s ON s.board_id = p_boards[u.place] AND s.user_id = u.id
    JOIN centile_store.periods p ON p.id = ANY (p_period_ids) AND p.id = ANY (s.period_ids)
    CROSS JOIN LATERAL (
        SELECT t.occurred_at FROM centile_store.score_transactions t
        WHERE t.board_id = s.board_id AND t.user_id = u.id AND t.kind = 'score' AND t.occurred_at >= p.starts_at AND t.occurred_at < p.ends_at
          AND (t.second_number IS NOT NULL OR p_board.mode = 'latest')
          AND NOT EXISTS (SELECT FROM centile_store.score_transactions v
                          WHERE v.board_id = s.board_id AND v.user_id = u.id AND v.kind = 'void' AND v.voids_id = t.id AND v.occurred_at >= p.starts_at)
        ORDER BY t.occurred_at DESC LIMIT 1) t
    WHERE p_board.mode = 'latest' OR p_board.tiebreak_sum = 'replaced'
$$;

COMMENT ON FUNCTION centile_store.deciding_times(centile_store.boards, integer[], bigint[], bigint[]) IS
'Times of the events that decide the standings of players on a board with ties second. Example: SELECT d.* FROM centile_store.boards b CROSS JOIN LATERAL centile_store.deciding_times(b, ''{1}'', ''{1}'', ''{1}'') d WHERE b.slug = ''main'';';
