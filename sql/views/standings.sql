-- Slow but simple: tests compare the fast functions with it. Partitioned by the columns of usual
-- filters, so that a filter comes before the ranking.
CREATE OR REPLACE VIEW centile.standings AS
SELECT n.slug AS board, p.kind, p.label,
       row_number() OVER (PARTITION BY n.slug, p.kind, p.label, p.segment ORDER BY l.rank_key DESC, l.tie_key DESC, l.user_id) AS position,
       CASE WHEN b.ties = 'shared' THEN rank() OVER (PARTITION BY n.slug, p.kind, p.label, p.segment ORDER BY l.rank_key DESC)
            ELSE row_number() OVER (PARTITION BY n.slug, p.kind, p.label, p.segment ORDER BY l.rank_key DESC, l.tie_key DESC, l.user_id) END AS rank,
       u.external_id AS user_id, u.name AS user_name, l.score, l.reached_at, p.segment, l.tiebreak
FROM centile_store.current_rankings g
JOIN centile_store.periods p ON p.id = g.period_id
JOIN centile_store.boards b ON b.id = g.board_id
JOIN centile_store.board_names n ON n.id = g.players_of
JOIN centile_store.leaderboard l ON l.ranking_id = g.id
JOIN centile_store.users u ON u.id = l.user_id;

COMMENT ON VIEW centile.standings IS
'Every entry of every open ranking with its rank, computed by a window function. Example: SELECT rank, user_id, score FROM centile.standings WHERE board = ''main'' AND kind = ''all_time'' AND segment = '''' ORDER BY position LIMIT 3;';
GRANT SELECT ON centile.standings TO centile_reader;
