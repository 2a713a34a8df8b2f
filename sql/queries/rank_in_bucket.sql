-- A player's standing in one round trip, if the player is in the bucket that this statement names: `bucket_00` stands for
-- each of the 100, and for its number. Parameters: period, ranking, when the selector began and ceases to mean them, user,
-- the layout and batches that the caller knows the bucket counts of, whether the board's ties share a rank.
--
-- Up to three rows: the player's own key (probe 0) and, where ties share a rank, the highest (1) and lowest (2) possible
-- key of the same score. `above` counts the players above it within its bucket; NULL when that is another bucket. The
-- bucket counts come along when they are not the ones that the caller knows. No row: no longer the current ranking.
SELECT k.probe, s.bucket, c.above, u.id IS NOT NULL AS user_exists, u.external_id, u.name, u.avatar, l.score, l.reached_at,
       centile.epoch() AS epoch, g.layout, v.batches,
       CASE WHEN k.probe = 0 AND (g.layout, v.batches) IS DISTINCT FROM ($6, $7)
           THEN centile_store.bucket_totals(g.id) END AS counts
FROM centile_store.periods p
JOIN centile_store.rankings g ON g.id = p.ranking_id
CROSS JOIN LATERAL (
    SELECT ARRAY(SELECT b.batch FROM centile_store.board_lanes b WHERE b.board_id = g.board_id ORDER BY b.lane) AS batches) v
LEFT JOIN centile_store.users u ON u.external_id = $5
LEFT JOIN centile_store.leaderboard l ON l.ranking_id = g.id AND l.user_id = u.id
JOIN LATERAL (
    VALUES (0, l.tie_key, -l.user_id),
           (1, 9223372036854775807, 9223372036854775807),
           (2, -9223372036854775808, -9223372036854775808)) AS k (probe, tie_key, user_key) ON $8 OR k.probe = 0
LEFT JOIN LATERAL (
    SELECT x.bucket, x.stripe FROM centile_store.stripes x
    WHERE x.ranking_id = g.id AND (x.rank_key, x.tie_key, x.user_key) <= (l.rank_key, k.tie_key, k.user_key)
    ORDER BY x.rank_key DESC, x.tie_key DESC, x.user_key DESC LIMIT 1) s ON true
LEFT JOIN LATERAL (
    SELECT x.rank_key, x.tie_key, x.user_key FROM centile_store.stripes x
    WHERE x.ranking_id = g.id AND (x.rank_key, x.tie_key, x.user_key) > (l.rank_key, k.tie_key, k.user_key)
    ORDER BY x.rank_key, x.tie_key, x.user_key LIMIT 1) n ON true
LEFT JOIN LATERAL (
    SELECT (SELECT coalesce(sum(y.players), 0)
            FROM centile_store.stripe_counts x, unnest(x.counts[s.stripe + 1:]) AS y (players)
            WHERE x.ranking_id = g.id AND x.bucket = s.bucket)::bigint
         + (SELECT count(*) FROM centile_store.leaderboard_bucket_00 x
            WHERE x.ranking_id = g.id AND (x.rank_key, x.tie_key, x.user_key) > (l.rank_key, k.tie_key, k.user_key)
              -- Beyond the last stripe: the greatest key there can be, which is no player's.
              AND (x.rank_key, x.tie_key, x.user_key)
                  < (coalesce(n.rank_key, 9223372036854775807), coalesce(n.tie_key, 9223372036854775807), coalesce(n.user_key, 9223372036854775807)))
           AS above) c ON s.bucket = '00'::smallint
WHERE p.id = $1 AND p.ranking_id = $2
  AND ($3::timestamptz IS NULL OR $3 <= statement_timestamp()) AND ($4::timestamptz IS NULL OR statement_timestamp() < $4)
