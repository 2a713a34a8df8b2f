-- Includes p_user_id if the ledger has rows of the player. A change in a segment counts only if its
-- whole period is closed: segments have no standings of their own.
CREATE OR REPLACE FUNCTION centile_store.changed_players(p_board_id integer, p_user_id bigint, p_changes centile_store.entry_change[]) RETURNS centile_store.player_standings[]
LANGUAGE sql STABLE
AS $$
    WITH change AS MATERIALIZED (
        SELECT DISTINCT ON (c.user_id, w.id) c.user_id, w.id AS period_id, c.rank_key, c.tie_key, c.only_zeros
        FROM unnest(p_changes) AS c
        JOIN centile_store.rankings g ON g.id = c.ranking_id
        JOIN centile_store.periods q ON q.id = g.period_id
        JOIN centile_store.periods w ON w.board_id = q.board_id AND w.kind = q.kind AND w.label = q.label AND w.segment = ''
        WHERE q.segment = '' OR w.ranking_id IS NULL
        ORDER BY c.user_id, w.id
    ), standing AS (
        SELECT c.user_id, c.period_id, c.rank_key, c.tie_key, c.only_zeros FROM change c
        UNION ALL
        SELECT p.user_id, s.period_id, s.rank_key, s.tie_key, coalesce(s.period_id = ANY (p.zero_periods), false)
        FROM centile_store.players p
        CROSS JOIN LATERAL unnest(p.period_ids, p.rank_keys, p.tie_keys) AS s (period_id, rank_key, tie_key)
        WHERE p.board_id = p_board_id AND p.user_id = ANY (p_user_id || ARRAY(SELECT c.user_id FROM unnest(p_changes) AS c))
          AND NOT EXISTS (SELECT FROM change c WHERE c.user_id = p.user_id AND c.period_id = s.period_id)
    )
    SELECT array_agg(p.standings)
    FROM (SELECT (u.id, coalesce(array_agg(s.period_id ORDER BY s.period_id) FILTER (WHERE s.rank_key IS NOT NULL), '{}'),
                  coalesce(array_agg(s.rank_key ORDER BY s.period_id) FILTER (WHERE s.rank_key IS NOT NULL), '{}'),
                  coalesce(array_agg(s.tie_key ORDER BY s.period_id) FILTER (WHERE s.rank_key IS NOT NULL), '{}'),
                  array_agg(s.period_id ORDER BY s.period_id) FILTER (WHERE s.rank_key IS NOT NULL AND s.only_zeros), p_board_id)::centile_store.player_standings AS standings
          FROM (SELECT c.user_id AS id FROM unnest(p_changes) AS c
                UNION
                SELECT p_user_id WHERE EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = p_board_id AND t.user_id = p_user_id)) u
          LEFT JOIN standing s ON s.user_id = u.id
          GROUP BY u.id) p
$$;

COMMENT ON FUNCTION centile_store.changed_players(integer, bigint, centile_store.entry_change[]) IS
'All standings of the players in p_changes, with these changes. Example: SELECT centile_store.changed_players(1, 1, ''{}'');';
