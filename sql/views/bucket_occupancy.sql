-- "place" is that of the bucket in the order of the scores, 1 the worst; the numbers of the tables
-- carry no order. from_score is the worst score of the bucket, and to_score that of the next better
-- bucket; NULL without an end or a range. Bounds are whole rank keys, so players with just that
-- score may be on either side; low_* is the lower bound. Partitioned by the column of the usual
-- filter. All rankings share the table, and its size in bytes with its index.
CREATE OR REPLACE VIEW centile.bucket_occupancy AS
SELECT n.slug AS board, p.kind, p.label, u.place::integer AS place, u.bucket,
       CASE WHEN u.has_range THEN centile.rank_key(nullif(u.rank_key, -9223372036854775808), b.score_order) END AS from_score,
       CASE WHEN u.has_range THEN centile.rank_key(nullif(u.next_rank_key, 9223372036854775807), b.score_order) END AS to_score,
       u.players, round(u.players / nullif(sum(u.players) OVER (PARTITION BY g.id), 0), 4) AS share,
       t.name AS table_name, pg_total_relation_size(t.name::regclass) AS size, g.id AS ranking_id, p.segment,
       u.rank_key AS low_rank_key, u.tie_key AS low_tie_key, u.user_key AS low_user_key
FROM centile_store.current_rankings r
JOIN centile_store.rankings g ON g.id = r.id AND g.has_bucket_rows
JOIN centile_store.periods p ON p.id = g.period_id
JOIN centile_store.boards b ON b.id = g.board_id
JOIN centile_store.board_names n ON n.id = g.players_of
CROSS JOIN LATERAL (
    SELECT u.place, u.bucket, u.rank_key, u.tie_key, u.user_key, coalesce(c.players, 0) AS players, lead(u.rank_key) OVER upwards AS next_rank_key,
           (u.rank_key, u.tie_key, u.user_key) < (coalesce(lead(u.rank_key) OVER upwards, 9223372036854775807),
                                                  coalesce(lead(u.tie_key) OVER upwards, 9223372036854775807),
                                                  coalesce(lead(u.user_key) OVER upwards, 9223372036854775807)) AS has_range
    FROM unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
        AS u (bucket, rank_key, tie_key, user_key, place)
    -- Readers may not call bucket_totals, key_min or key_max.
    LEFT JOIN (
        SELECT x.n - 1 AS bucket, sum(x.players)::bigint AS players
        FROM centile_store.bucket_counts l, unnest(l.counts) WITH ORDINALITY AS x (players, n)
        WHERE l.ranking_id = g.id GROUP BY x.n) c ON c.bucket = u.bucket
    WINDOW upwards AS (ORDER BY u.place)) u
CROSS JOIN LATERAL (SELECT 'centile_store.leaderboard_bucket_' || to_char(u.bucket, 'FM00') COLLATE "C" AS name) t;

COMMENT ON VIEW centile.bucket_occupancy IS
'Place, bounds, players, share and table size of each of the 100 buckets of every open ranking that has bucket rows. Example: SELECT place, bucket, from_score, to_score, players, share, table_name, size FROM centile.bucket_occupancy WHERE board = ''main'' AND kind = ''all_time'' AND segment = '''' AND players > 0 ORDER BY place DESC;';
GRANT SELECT ON centile.bucket_occupancy TO centile_reader;
