-- By the database's clock and the board's time zone. A window ranks all entries, partitioned by
-- board, so that a filter on it comes first.
CREATE OR REPLACE VIEW centile.current_ranking_month AS
SELECT b.slug AS board, p.label,
       row_number() OVER (PARTITION BY b.slug, p.label ORDER BY l.rank_key DESC, l.tie_key DESC, l.user_id) AS position,
       CASE WHEN b.ties = 'shared' THEN rank() OVER (PARTITION BY b.slug, p.label ORDER BY l.rank_key DESC)
            ELSE row_number() OVER (PARTITION BY b.slug, p.label ORDER BY l.rank_key DESC, l.tie_key DESC, l.user_id) END AS rank,
       u.external_id AS user_id, u.name AS user_name, l.score, l.reached_at
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
JOIN centile_store.leaderboard l ON l.ranking_id = p.ranking_id
JOIN centile_store.users u ON u.id = l.user_id
WHERE p.kind = 'month' AND p.segment = '' AND p.starts_at <= statement_timestamp() AND statement_timestamp() < p.ends_at;

COMMENT ON VIEW centile.current_ranking_month IS
'The standings of every board''s current month. Example: SELECT position, rank, user_id, score FROM centile.current_ranking_month WHERE board = ''ladder'' ORDER BY position LIMIT 3;';
GRANT SELECT ON centile.current_ranking_month TO centile_reader;
