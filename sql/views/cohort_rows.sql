-- Partitioned by the cohort, so that a filter comes before the ranking. Ranks of a closed period are
-- those of its archive; the others follow from the standings of the members. A member without a
-- standing has no rank.
CREATE OR REPLACE VIEW centile_store.cohort_rows AS
SELECT x.league_id, x.period_id, x.cohort_id, x.division, x.user_id, x.rank, x.score, x.ranked,
       CASE WHEN x.is_closed THEN x.division_after ELSE centile_store.league_move(x.league, x.division, x.rank, x.tied, x.ranked) END AS division_after,
       x.rank_key, x.tie_key
FROM (SELECT l AS league, l.id AS league_id, c.period_id, c.id AS cohort_id, c.division, m.user_id, m.division_after, q.state = 'closed' AS is_closed,
             CASE WHEN q.state = 'closed' THEN m.score ELSE centile.rank_key(k.rank_key, b.score_order) END AS score,
             CASE WHEN q.state = 'closed' THEN m.rank
                  WHEN k.rank_key IS NULL THEN NULL
                  WHEN b.ties = 'shared' THEN rank() OVER (PARTITION BY c.id ORDER BY k.rank_key DESC NULLS LAST)
                  ELSE rank() OVER (PARTITION BY c.id ORDER BY k.rank_key DESC NULLS LAST, k.tie_key DESC, m.user_id) END AS rank,
             CASE b.ties WHEN 'shared' THEN count(*) OVER (PARTITION BY c.id, k.rank_key) ELSE 1 END AS tied,
             count(CASE WHEN q.state = 'closed' THEN m.rank ELSE k.rank_key END) OVER (PARTITION BY c.id) AS ranked,
             k.rank_key, k.tie_key
      FROM centile_store.league_cohorts c
      JOIN centile_store.leagues l ON l.id = c.league_id
      JOIN centile_store.boards b ON b.id = l.board_id
      JOIN centile_store.periods q ON q.id = c.period_id
      JOIN centile_store.league_members m ON m.cohort_id = c.id
      LEFT JOIN LATERAL (
          SELECT p.rank_keys[o.n] AS rank_key, p.tie_keys[o.n] AS tie_key
          FROM centile_store.players p CROSS JOIN LATERAL (SELECT array_position(p.period_ids, c.period_id) AS n) o
          WHERE p.board_id = l.board_id AND p.user_id = m.user_id AND q.state <> 'closed') k ON true) x;

COMMENT ON VIEW centile_store.cohort_rows IS
'Members of all cohorts of leagues, with their ranks among each other and the division that these lead to. Example: SELECT r.rank, r.score FROM centile_store.cohort_rows r WHERE r.cohort_id = 1 ORDER BY r.rank;';
GRANT SELECT ON centile_store.cohort_rows TO centile_service;
