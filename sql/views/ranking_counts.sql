-- One statement has one snapshot, so you can read it while scores arrive. It reads the bucket
-- tables and the entries of the rankings.
CREATE OR REPLACE VIEW centile.ranking_counts AS
SELECT x.board, x.kind, x.label, x.in_buckets, x.bucket_rows, x.entries, x.in_buckets = x.bucket_rows AND x.bucket_rows = x.entries AS agree, x.segment
FROM (
    SELECT b.slug AS board, p.kind, p.label, p.segment,
           (SELECT coalesce(sum(n), 0)::bigint FROM centile_store.bucket_counts c, unnest(c.counts) AS n WHERE c.ranking_id = p.ranking_id) AS in_buckets,
           (SELECT count(*) FROM centile_store.leaderboard_bucket r WHERE r.ranking_id = p.ranking_id) AS bucket_rows,
           (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p.ranking_id) AS entries
    FROM centile_store.periods p
    JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.ranking_id IS NOT NULL) x;

COMMENT ON VIEW centile.ranking_counts IS
'Players of every open ranking by bucket counts, bucket rows and entries, and whether these agree. Example: SELECT * FROM centile.ranking_counts WHERE board = ''main'' AND kind = ''all_time'' AND segment = '''';';
GRANT SELECT ON centile.ranking_counts TO centile_reader;
