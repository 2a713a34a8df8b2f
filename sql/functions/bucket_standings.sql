-- Players in one snapshot: a row for each user, numbered as given. Columns common to all are set in
-- the first row. Returns no row if the ranking is no longer the current one of the period. The same
-- applies outside p_valid_from to p_valid_until, the time in which the selector means the period.
--
-- is_behind: batches are not applied yet, so the state is older than the board's last batches. A
-- ranking without bucket rows is never behind, and the last batches identify its counts.
-- Also returns the bucket counts if the caller's counts have another layout or other revisions.
-- p_revisions has one revision per lane.
-- Where ranks are shared and equal scores may be in other buckets too, beside_equals has two
-- counts: the players above all equal scores, and these players with the equal scores. Without SET
-- and STRICT, so that PostgreSQL inlines the function and computes only the columns that the caller
-- reads.
CREATE OR REPLACE FUNCTION centile_store.bucket_standings(
    p_board_id integer, p_period_id bigint, p_ranking_id bigint, p_valid_from timestamptz, p_valid_until timestamptz,
    p_users text[], p_layout integer, p_revisions bigint[])
RETURNS TABLE (n bigint, external_id text, name text, avatar text, score bigint, reached_at timestamptz,
               place integer, bucket smallint, counted bigint[], from_below boolean, beside_equals bigint[],
               epoch text, batches bigint[], is_behind boolean, layout integer, revisions bigint[], counts bigint[],
               key centile_store.rank_key, score_order text, is_shared boolean, tiebreak_order text, tiebreak bigint)
LANGUAGE sql STABLE
AS $$
    SELECT w.n, u.external_id, u.name, u.avatar, centile.rank_key(l.rank_key, b.score_order), centile_store.shown_time(l.tie_key, b.tiebreak_order),
           c.place, c.bucket, c.counted, c.from_below,
           CASE WHEN b.ties = 'shared' AND NOT c.has_all_equals THEN ARRAY[
               centile_store.count_above(g.id, centile_store.highest_key(l.rank_key)),
               centile_store.count_above(g.id, centile_store.lowest_key(l.rank_key))] END,
           CASE WHEN w.n = 1 THEN centile.epoch() END,
           CASE WHEN w.n = 1 THEN v.batches END, v.is_behind, g.layout,
           CASE WHEN w.n = 1 THEN v.revisions END,
           CASE WHEN w.n = 1 AND (g.layout, v.revisions) IS DISTINCT FROM (p_layout, p_revisions)
               THEN centile_store.bucket_totals(g.id) END,
           (l.rank_key, l.tie_key, -u.id)::centile_store.rank_key, b.score_order, b.ties = 'shared',
           b.tiebreak_order, centile_store.shown_tiebreak(l.tie_key, b.tiebreak_order)
    FROM centile_store.periods p
    JOIN centile_store.rankings g ON g.period_id = p.id AND (g.id = p.ranking_id OR g.players_of <> g.board_id AND p.ranking_id IS NOT NULL)
    JOIN centile_store.boards b ON b.id = g.board_id
    CROSS JOIN LATERAL (
        SELECT ARRAY(SELECT coalesce((SELECT a.batch FROM centile_store.applied a
                                      WHERE a.board_id = g.board_id AND a.lane = n ORDER BY a.batch DESC LIMIT 1), 0)
                     FROM generate_series(0, g.lanes - 1) AS n ORDER BY n) AS batches,
               ARRAY(SELECT (SELECT b.batch FROM centile_store.board_lanes b
                             WHERE b.board_id = g.board_id AND b.lane = n ORDER BY b.batch DESC LIMIT 1)
                     FROM generate_series(0, g.lanes - 1) AS n ORDER BY n) AS newest,
               ARRAY(SELECT coalesce((SELECT c.revision FROM centile_store.bucket_counts c
                                      WHERE c.ranking_id = g.id AND c.lane = n ORDER BY c.revision DESC LIMIT 1), 0)
                     FROM generate_series(0, g.lanes - 1) AS n ORDER BY n) AS revisions
        OFFSET 0) a
    CROSS JOIN LATERAL (
        SELECT CASE WHEN g.has_bucket_rows THEN a.batches ELSE a.newest END AS batches,
               g.has_bucket_rows AND a.batches IS DISTINCT FROM a.newest AS is_behind,
               CASE WHEN g.has_bucket_rows THEN a.revisions ELSE a.newest END AS revisions, CASE p.segment WHEN '' THEN p.id ELSE (
            SELECT w.id FROM centile_store.periods w WHERE w.board_id = p.board_id AND w.kind = p.kind AND w.label = p.label AND w.segment = '') END AS whole_id
        OFFSET 0) v
    CROSS JOIN LATERAL unnest(p_users) WITH ORDINALITY AS w (external_id, n)
    LEFT JOIN centile_store.users u ON u.external_id = w.external_id
    LEFT JOIN LATERAL (
        -- As in centile_store.leaderboard, which would look up ranking and periods for each player.
        SELECT x.rank_keys[n.place] AS rank_key, x.tie_keys[n.place] AS tie_key
        FROM centile_store.players x
        CROSS JOIN LATERAL (SELECT array_position(x.period_ids, v.whole_id) AS place OFFSET 0) n
        WHERE NOT v.is_behind AND x.board_id = g.players_of AND x.user_id = u.id AND n.place IS NOT NULL
          AND (p.segment = '' OR p.segment IN (SELECT centile_store.segments_at(p.board_id, u.id, p.ends_at)))
        UNION ALL
        SELECT k.rank_key, k.tie_key FROM centile_store.applied_key(g.id, u.id) k WHERE v.is_behind) l ON true
    LEFT JOIN LATERAL centile_store.above_in_bucket(g.id, l.rank_key, l.tie_key, -u.id) c ON true
    WHERE p.board_id = p_board_id AND p.id = p_period_id AND g.id = p_ranking_id
      AND (p_valid_from IS NULL OR p_valid_from <= statement_timestamp()) AND (p_valid_until IS NULL OR statement_timestamp() < p_valid_until)
$$;

COMMENT ON FUNCTION centile_store.bucket_standings(integer, bigint, bigint, timestamptz, timestamptz, text[], integer, bigint[]) IS
'Players of a ranking, each with the number of players above in the bucket, and the version. Example: SELECT s.external_id, s.score, s.bucket FROM centile_store.periods p CROSS JOIN LATERAL centile_store.bucket_standings(p.board_id, p.id, p.ranking_id, NULL, NULL, ''{ann}'', NULL, NULL) s WHERE p.kind = ''all_time'';';
