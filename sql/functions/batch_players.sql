-- One row per place of p_boards and p_users, also for unknown users. PostgreSQL inlines it into its
-- callers.
CREATE OR REPLACE FUNCTION centile_store.batch_players(p_board_id integer, p_lane smallint, p_boards integer[], p_users text[])
RETURNS TABLE (place bigint, player centile_store.player_state)
LANGUAGE sql STABLE
AS $$
    SELECT p.place, (u.id, u.banned_at IS NOT NULL OR coalesce(b.banned, false), u.lane_hash % (SELECT x.lanes FROM centile_store.boards x WHERE x.id = p_board_id) = p_lane,
                     b.period_ids, b.rank_keys, b.tie_keys, b.zero_periods,
                     p.board_id <> p_board_id AND NOT EXISTS (SELECT FROM centile_store.template_boards t WHERE t.id = p.board_id))::centile_store.player_state
    FROM unnest(p_boards, p_users) WITH ORDINALITY AS p (board_id, external_id, place)
    -- LIMIT forces look-ups by index: the planner does not know that there are few names.
    LEFT JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.external_id = p.external_id LIMIT 1) u ON true
    LEFT JOIN LATERAL (SELECT * FROM centile_store.players b WHERE b.board_id = p.board_id AND b.user_id = u.id AND b.lane = p_lane LIMIT 1) b ON true
$$;

COMMENT ON FUNCTION centile_store.batch_players(integer, smallint, integer[], text[]) IS
'Players of a batch of score events, with their place in p_users. Example: SELECT (b.player).user_id FROM centile_store.batch_players(1, 0::smallint, ''{1}'', ''{ann}'') b;';
