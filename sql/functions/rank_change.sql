-- The player's rank now, the rank that the earlier key would have now if the player still had it, the
-- player's score and, on boards with tiers, the number of players. The caller names the period, not
-- its ranking: a repeated answer may be older than the ranking. No row without bucket rows.
CREATE OR REPLACE FUNCTION centile_store.rank_change(p_board_id integer, p_period text, p_user_id bigint, p_was_rank_key bigint, p_was_tie_key bigint,
    OUT rank bigint, OUT previous_rank bigint, OUT score bigint, OUT players bigint)
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN l.rank_key IS NOT NULL THEN
               1 + centile_store.count_above(g.id, CASE b.ties WHEN 'shared' THEN centile_store.highest_key(l.rank_key)
                   ELSE (l.rank_key, l.tie_key, -p_user_id)::centile_store.rank_key END) END,
           CASE WHEN p_was_rank_key IS NOT NULL THEN
               1 + centile_store.count_above(g.id, CASE b.ties WHEN 'shared' THEN centile_store.highest_key(p_was_rank_key)
                   ELSE (p_was_rank_key, p_was_tie_key, -p_user_id)::centile_store.rank_key END)
               -- A player does not stand above their own earlier key.
               - CASE WHEN l.rank_key IS NULL THEN 0
                      WHEN b.ties = 'shared' THEN (l.rank_key > p_was_rank_key)::integer
                      ELSE ((l.rank_key, l.tie_key) > (p_was_rank_key, p_was_tie_key))::integer END
           END,
           centile.rank_key(l.rank_key, b.score_order), CASE WHEN b.tiers <> '{}' THEN centile_store.player_count(g.id) END
    FROM centile_store.periods p
    JOIN centile_store.current_rankings c ON c.period_id = p.id AND c.players_of = p_board_id
    JOIN centile_store.rankings g ON g.id = c.id AND g.has_bucket_rows
    JOIN centile_store.boards b ON b.id = g.board_id
    CROSS JOIN LATERAL centile_store.applied_key(g.id, p_user_id) l
    WHERE p.board_id = centile_store.owner_of(p_board_id) AND p.kind = split_part(p_period, ':', 1)
      AND p.label = substr(p_period, CASE p_period WHEN 'all_time' THEN 1 ELSE position(':' IN p_period) + 1 END) AND p.segment = ''
$$;

COMMENT ON FUNCTION centile_store.rank_change(integer, text, bigint, bigint, bigint) IS
'A player''s rank and score now, the rank of an earlier key of the player, and on boards with tiers the number of players. Example: SELECT * FROM centile_store.rank_change(1, ''week:2024-01-15'', 1, 20, 0), centile_store.rank_change(1, ''all_time'', 1, 20, 0) AS a;';
