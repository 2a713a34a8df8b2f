-- In a segment: the standings in its whole period of the players who belong to the segment at the
-- period's end. A ranking that is being built shows the standings of its period. Bucket functions
-- read this view as bucket 100, the only one of a ranking without bucket rows.
CREATE OR REPLACE VIEW centile_store.leaderboard AS
SELECT x.ranking_id, x.user_id, centile.rank_key(k.rank_key, b.score_order) AS score, k.rank_key, k.tie_key,
       CASE WHEN b.tiebreak_order IS NULL THEN centile.tie_key_time(k.tie_key) END AS reached_at, x.lane, coalesce(x.period_id = ANY (x.zero_periods), false) AS only_zeros, -x.user_id AS user_key,
       CASE WHEN b.tiebreak_order IS NOT NULL THEN centile.rank_key(k.tie_key, b.tiebreak_order) END AS tiebreak
FROM (SELECT g.id AS ranking_id, q.id AS period_id, g.board_id, p.user_id, p.lane, p.period_ids, p.rank_keys, p.tie_keys, p.zero_periods
      FROM centile_store.rankings g
      JOIN centile_store.periods q ON q.id = g.period_id AND q.segment = ''
      JOIN centile_store.players p ON p.board_id = g.players_of
      UNION ALL
      SELECT g.id, w.id, p.board_id, p.user_id, p.lane, p.period_ids, p.rank_keys, p.tie_keys, p.zero_periods
      FROM centile_store.rankings g
      JOIN centile_store.periods q ON q.id = g.period_id AND q.segment <> ''
      JOIN centile_store.periods w ON w.board_id = q.board_id AND w.kind = q.kind AND w.label = q.label AND w.segment = ''
      JOIN centile_store.segment_members m ON m.board_id = q.board_id AND m.segment = q.segment AND m.is_member AND m.changed_at < q.ends_at
      JOIN centile_store.players p ON p.board_id = m.board_id AND p.user_id = m.user_id
      WHERE NOT EXISTS (SELECT FROM centile_store.segment_members l
                        WHERE l.board_id = m.board_id AND l.user_id = m.user_id AND l.segment = m.segment AND l.batch > m.batch AND l.changed_at < q.ends_at)) x
LEFT JOIN centile_store.boards b ON b.id = x.board_id
-- Computed here: on a cluster, postgres_fdw cannot send a subscript of another server's array.
CROSS JOIN LATERAL (SELECT x.rank_keys[n.place] AS rank_key, x.tie_keys[n.place] AS tie_key
                    FROM (SELECT array_position(x.period_ids, x.period_id) AS place OFFSET 0) n WHERE n.place IS NOT NULL OFFSET 0) k;

COMMENT ON VIEW centile_store.leaderboard IS
'Entries: the standing of each player in each ranking. Example: SELECT user_id, score FROM centile_store.leaderboard WHERE ranking_id = 1 ORDER BY rank_key DESC LIMIT 3;';
GRANT SELECT ON centile_store.leaderboard TO centile_reader, centile_service;
