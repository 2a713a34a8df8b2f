-- One statement has one snapshot, so you can read it while scores arrive. It reads the bucket
-- tables and the entries of the rankings.
CREATE OR REPLACE VIEW centile.ranking_counts AS
SELECT x.board, x.kind, x.label, x.in_buckets, x.bucket_rows, x.entries, x.in_buckets = x.bucket_rows AND x.bucket_rows = x.entries + x.unapplied AS agree, x.segment
FROM (
    SELECT w.slug AS board, p.kind, p.label, p.segment,
           (SELECT coalesce(sum(n), 0)::bigint FROM centile_store.bucket_counts c, unnest(c.counts) AS n WHERE c.ranking_id = g.id) AS in_buckets,
           (SELECT count(*) FROM centile_store.leaderboard_bucket r WHERE r.ranking_id = g.id) AS bucket_rows,
           (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = g.id) AS entries,
           -- Entries at the applied batches minus entries now.
           (SELECT count(f.was_rank_key) - count(l.user_id)
            FROM (SELECT DISTINCT ON (e.user_id) e.user_id, e.was_rank_key
                  FROM generate_series(0, b.lanes - 1) AS n
                  JOIN centile_store.batch_log c ON c.board_id = b.id AND c.lane = n AND c.batch > coalesce((
                      SELECT a.batch FROM centile_store.applied a WHERE a.board_id = b.id AND a.lane = n ORDER BY a.batch DESC LIMIT 1), 0)
                  CROSS JOIN LATERAL unnest(c.ranking_ids, c.user_ids, c.was_rank_keys) AS e (ranking_id, user_id, was_rank_key)
                  WHERE e.ranking_id = g.id
                  ORDER BY e.user_id, c.batch) f
            LEFT JOIN centile_store.leaderboard l ON l.ranking_id = g.id AND l.user_id = f.user_id) AS unapplied
    FROM centile_store.current_rankings o
    JOIN centile_store.rankings g ON g.id = o.id AND g.has_bucket_rows
    JOIN centile_store.periods p ON p.id = g.period_id
    JOIN centile_store.boards b ON b.id = g.board_id
    JOIN centile_store.board_names w ON w.id = g.players_of) x;

COMMENT ON VIEW centile.ranking_counts IS
'Players of every open ranking with bucket rows by bucket counts, bucket rows and entries, and whether they agree. agree allows for batches that are not applied yet. Example: SELECT * FROM centile.ranking_counts WHERE board = ''main'' AND kind = ''all_time'' AND segment = '''';';
GRANT SELECT ON centile.ranking_counts TO centile_reader;
