-- How full the buckets of each open ranking are. from_score is the worst score at which a bucket begins and to_score where the
-- next better one does; none where there is no end, and none for a bucket that no stripe belongs to. Bounds are whole rank
-- keys, so players with just that score may stand on either side. The table, and its size in bytes with its index, is shared
-- by all rankings.
CREATE VIEW centile.bucket_occupancy AS
SELECT b.slug AS board, p.kind, p.label, c.bucket,
       centile.rank_key(nullif(low.rank_key, -9223372036854775808), b.score_order) AS from_score,
       CASE WHEN low.rank_key IS NOT NULL THEN centile.rank_key(high.rank_key, b.score_order) END AS to_score,
       c.players, round(c.players / nullif(c.total, 0), 4) AS share,
       (SELECT count(*) FROM centile_store.stripes s WHERE s.ranking_id = p.ranking_id AND s.bucket = c.bucket) AS stripes,
       'centile_store.' || t.relname AS table_name, pg_total_relation_size(t.oid) AS size, p.ranking_id
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
CROSS JOIN LATERAL (
    SELECT (u.place - 1)::smallint AS bucket, sum(u.players)::bigint AS players, sum(sum(u.players)) OVER () AS total
    FROM centile_store.bucket_counts x, unnest(x.counts) WITH ORDINALITY AS u (players, place)
    WHERE x.ranking_id = p.ranking_id
    GROUP BY u.place) c
LEFT JOIN LATERAL (
    SELECT s.rank_key FROM centile_store.stripes s WHERE s.ranking_id = p.ranking_id AND s.bucket = c.bucket
    ORDER BY s.stripe LIMIT 1) low ON true
LEFT JOIN LATERAL (
    SELECT s.rank_key FROM centile_store.stripes s WHERE s.ranking_id = p.ranking_id AND s.bucket > c.bucket
    ORDER BY s.bucket, s.stripe LIMIT 1) high ON true
JOIN pg_catalog.pg_class t
    ON t.relnamespace = 'centile_store'::regnamespace AND t.relname = 'leaderboard_bucket_' || to_char(c.bucket, 'FM00')
WHERE p.ranking_id IS NOT NULL;

COMMENT ON VIEW centile.bucket_occupancy IS
'Bounds, players, share, stripes and table size of each of the 100 buckets of every open ranking. Example: SELECT bucket, from_score, to_score, players, share, stripes, table_name, size FROM centile.bucket_occupancy WHERE board = ''main'' AND kind = ''all_time'' AND players > 0 ORDER BY bucket DESC;';
GRANT SELECT ON centile.bucket_occupancy TO centile_reader;
