-- Standings of several players, in one round trip and one snapshot. Parameters: board, period, ranking, when the selector began and
-- ceases to mean them, users, the layout and batches that the caller knows the bucket counts of, whether ranks are shared, how many
-- neighbours above and below. A row for each user, numbered as given; what is the same for all stands in the first.
--
-- The players above are counted within each player's bucket. The bucket counts come along when they are not the ones that the
-- caller knows. No row: no longer the current ranking.
--
-- Where ranks are shared ($9) and players with the same rank key stand in other stripes too, the players above the first and from
-- the last of these upwards are counted from wherever they stand.
SELECT w.n AS "n!", u.external_id AS "external_id?", u.name AS "name?", u.avatar,
       l.score AS "score?", l.reached_at AS "reached_at?",
       c.bucket AS "bucket?", c.other_stripes AS "other_stripes?", c.are_below AS "are_below?", c.in_stripe AS "in_stripe?",
       CASE WHEN $9::boolean AND NOT c.has_all_equals THEN ARRAY[
           centile_store.count_above(g.id, l.rank_key, 9223372036854775807, 9223372036854775807),
           centile_store.count_above(g.id, l.rank_key, -9223372036854775808, -9223372036854775808)] END AS beside_equals,
       CASE WHEN $10::integer > 0 THEN (
           SELECT jsonb_agg(to_jsonb(near) ORDER BY near.step)
           FROM centile_store.neighbours(g.id, c.bucket, $9, b.score_order, l.rank_key, l.tie_key, -l.user_id, $10) near
           WHERE near.step <> 0) END AS "neighbours: Json<Vec<StoredNeighbour>>",
       CASE WHEN w.n = 1 THEN centile.epoch() END AS epoch, g.layout,
       CASE WHEN w.n = 1 THEN v.batches END AS batches,
       CASE WHEN w.n = 1 AND (g.layout, v.batches) IS DISTINCT FROM ($7::integer, $8::bigint[])
           THEN centile_store.bucket_totals(g.id) END AS counts
FROM centile_store.periods p
JOIN centile_store.rankings g ON g.id = p.ranking_id
JOIN centile_store.boards b ON b.id = g.board_id
CROSS JOIN LATERAL (
    SELECT ARRAY(SELECT (SELECT b.batch FROM centile_store.board_lanes b
                         WHERE b.board_id = g.board_id AND b.lane = n ORDER BY b.batch DESC LIMIT 1)
                 FROM generate_series(0, g.lanes - 1) AS n ORDER BY n) AS batches
    OFFSET 0) v
CROSS JOIN LATERAL unnest($6::text[]) WITH ORDINALITY AS w (external_id, n)
LEFT JOIN centile_store.users u ON u.external_id = w.external_id
LEFT JOIN centile_store.leaderboard l ON l.ranking_id = g.id AND l.user_id = u.id
LEFT JOIN LATERAL centile_store.above_in_bucket(g.id, l.rank_key, l.tie_key, -l.user_id, g.lanes) c ON true
WHERE p.board_id = $1 AND p.id = $2 AND p.ranking_id = $3
  AND ($4::timestamptz IS NULL OR $4 <= statement_timestamp()) AND ($5::timestamptz IS NULL OR statement_timestamp() < $5)
