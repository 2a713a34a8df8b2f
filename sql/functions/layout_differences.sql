-- "place" is for sorting. p_batches, p_times: the last batch and time of each lane, if known.
CREATE OR REPLACE FUNCTION centile_store.layout_differences(p_ranking_id bigint, p_batches bigint[] DEFAULT NULL, p_times timestamptz[] DEFAULT NULL)
RETURNS TABLE (kind text, place integer, subject text, expected jsonb, found jsonb)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_ranking centile_store.rankings;
BEGIN
    SELECT * INTO STRICT v_ranking FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    -- Once for all segments of a period.
    IF NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.id = v_ranking.period_id AND p.segment = '') THEN
        p_batches := NULL;
        p_times := NULL;
    ELSIF p_batches IS NULL THEN
        SELECT * INTO p_batches, p_times FROM centile_store.ledger_lanes(v_ranking.board_id);
    END IF;
    RETURN QUERY
    WITH bound AS (
        SELECT u.*, lag(ARRAY[u.rank_key, u.tie_key, u.user_key]) OVER (ORDER BY u.place) AS below, ARRAY[u.rank_key, u.tie_key, u.user_key] AS key
        FROM unnest(v_ranking.buckets, v_ranking.low_rank_keys, v_ranking.low_tie_keys, v_ranking.low_user_keys) WITH ORDINALITY
            AS u (bucket, rank_key, tie_key, user_key, place)
    ), lane AS (
        SELECT n AS lane FROM generate_series(0, v_ranking.lanes - 1) AS n
    )
    SELECT 'layout', 0, 'lowest bound', to_jsonb('the least key'::text), to_jsonb(b.key)
    FROM bound b WHERE b.place = 1 AND b.key <> array_fill(centile_store.key_min(), '{3}')
    UNION ALL
    SELECT 'layout', b.place::integer, format('bound of place %s', b.place), to_jsonb(format('%s or higher', b.below)), to_jsonb(b.key)
    FROM bound b WHERE b.key < b.below
    UNION ALL
    SELECT 'layout', 100 + n, format('places of bucket %s', n), to_jsonb(1), to_jsonb(x.places)
    FROM generate_series(0, 99) AS n
    CROSS JOIN LATERAL (SELECT count(*) AS places FROM bound b WHERE b.bucket = n) x
    WHERE x.places <> 1 AND v_ranking.has_bucket_rows
    UNION ALL
    SELECT 'lane rows', 100, format('bucket counts of lane %s', l.lane), to_jsonb(1), to_jsonb(c.rows)
    FROM lane l
    CROSS JOIN LATERAL (SELECT count(*) AS rows FROM centile_store.bucket_counts c WHERE c.ranking_id = p_ranking_id AND c.lane = l.lane) c
    -- On a cluster, a lane has no counts before its first batch in the ranking.
    WHERE c.rows <> 1 AND (c.rows > 1 OR (v_ranking.has_bucket_rows AND to_regclass('centile_lanes.groups') IS NULL))
    UNION ALL
    SELECT 'lane rows', 101, format('lane %s of the board', l.lane), to_jsonb(1), to_jsonb(b.rows)
    FROM lane l
    CROSS JOIN LATERAL (SELECT count(*) AS rows FROM centile_store.board_lanes b
                        WHERE b.board_id = v_ranking.board_id AND b.lane = l.lane) b
    WHERE b.rows <> 1
    UNION ALL
    -- No function creates such rows.
    SELECT 'lane rows', 102, format('bucket counts of lane %s, which the board lacks', c.lane), to_jsonb(0), to_jsonb(count(*))
    FROM centile_store.bucket_counts c
    WHERE c.ranking_id = p_ranking_id AND c.lane NOT BETWEEN 0 AND v_ranking.lanes - 1
    GROUP BY c.lane
    UNION ALL
    SELECT 'lane rows', 103, 'lanes of the ranking', to_jsonb(b.lanes), to_jsonb(v_ranking.lanes)
    FROM centile_store.boards b WHERE b.id = v_ranking.board_id AND b.lanes <> v_ranking.lanes
    UNION ALL
    -- Rows contain their lane, because moving a boundary changes the counts of these lanes.
    SELECT 'lane rows', 104, 'entries and bucket rows of another lane than their player''s', to_jsonb(0), to_jsonb(count(*))
    FROM (SELECT l.user_id, l.lane FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id
          UNION ALL
          SELECT -r.user_key, r.lane FROM centile_store.leaderboard_bucket r WHERE r.ranking_id = p_ranking_id) x
    JOIN centile_store.users u ON u.id = x.user_id
    WHERE x.lane <> u.lane_hash % v_ranking.lanes
    HAVING count(*) > 0
    UNION ALL
    -- A cut-off takes its number from the lane's row. The archive would lack rows above it.
    SELECT 'lane rows', 105, format('last batch and time of lane %s of the board', b.lane), jsonb_build_array(t.batch, t.at), jsonb_build_array(b.batch, b.last_at)
    FROM (SELECT greatest(u.batch, centile_store.last_logged(v_ranking.board_id, (u.place - 1)::smallint)) AS batch, u.at, u.place
          FROM unnest(p_batches, p_times) WITH ORDINALITY AS u (batch, at, place)) t
    JOIN centile_store.board_lanes b ON b.board_id = v_ranking.board_id AND b.lane = t.place - 1
    WHERE b.batch < t.batch OR b.last_at < t.at;
END
$$;

COMMENT ON FUNCTION centile_store.layout_differences(bigint, bigint[], timestamptz[]) IS
'Inconsistencies of a ranking''s layout, and missing or extra rows of its lanes. Example: SELECT * FROM centile_store.layout_differences(1);';
