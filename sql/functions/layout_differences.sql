-- What is wrong with a ranking's layout by itself, and with the rows that there must be for each lane. place is for sorting.
CREATE FUNCTION centile_store.layout_differences(p_ranking_id bigint)
RETURNS TABLE (kind text, place integer, subject text, expected jsonb, found jsonb)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_ranking centile_store.rankings;
BEGIN
    SELECT * INTO STRICT v_ranking FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    RETURN QUERY
    WITH stripe AS (
        SELECT s.*, row_number() OVER (PARTITION BY s.bucket ORDER BY s.rank_key, s.tie_key, s.user_key) AS number,
               lag(s.bucket) OVER (ORDER BY s.rank_key, s.tie_key, s.user_key) AS bucket_below
        FROM centile_store.stripes s WHERE s.ranking_id = p_ranking_id
    ), stripes_of AS (
        SELECT n AS bucket, (SELECT count(*) FROM stripe s WHERE s.bucket = n) AS stripes FROM generate_series(0, 99) AS n
    ), lane AS (
        SELECT n AS lane FROM generate_series(0, v_ranking.lanes - 1) AS n
    )
    -- Every key is in a stripe.
    SELECT 'layout', -1, 'lowest stripe', to_jsonb('begins at the least key'::text), to_jsonb('begins above it'::text)
    WHERE NOT EXISTS (SELECT FROM stripe s
                      WHERE (s.rank_key, s.tie_key, s.user_key) = (-9223372036854775808, -9223372036854775808, -9223372036854775808))
    UNION ALL
    SELECT 'layout', s.bucket::integer, format('number of the stripe at (%s, %s, %s) of bucket %s', s.rank_key, s.tie_key, s.user_key, s.bucket),
           to_jsonb(s.number), to_jsonb(s.stripe)
    FROM stripe s WHERE s.stripe <> s.number
    UNION ALL
    SELECT 'layout', s.bucket::integer, format('bucket of the stripe at (%s, %s, %s)', s.rank_key, s.tie_key, s.user_key),
           to_jsonb(format('%s or higher', s.bucket_below)), to_jsonb(s.bucket)
    FROM stripe s WHERE s.bucket < s.bucket_below
    UNION ALL
    -- A bucket that stripes have left may keep rows without any number.
    SELECT 'layout', c.bucket::integer, format('numbers in the counts of bucket %s, lane %s', c.bucket, c.lane),
           to_jsonb(o.stripes), to_jsonb(cardinality(c.counts))
    FROM centile_store.stripe_counts c
    JOIN stripes_of o ON o.bucket = c.bucket
    WHERE c.ranking_id = p_ranking_id AND cardinality(c.counts) <> o.stripes
    UNION ALL
    SELECT 'lane rows', o.bucket, format('stripe counts of bucket %s, lane %s', o.bucket, l.lane), to_jsonb(1), to_jsonb(c.rows)
    FROM stripes_of o
    CROSS JOIN lane l
    CROSS JOIN LATERAL (SELECT count(*) AS rows FROM centile_store.stripe_counts c
                        WHERE c.ranking_id = p_ranking_id AND c.bucket = o.bucket AND c.lane = l.lane) c
    WHERE c.rows > 1 OR c.rows = 0 AND o.stripes > 0
    UNION ALL
    SELECT 'lane rows', 100, format('bucket counts of lane %s', l.lane), to_jsonb(1), to_jsonb(c.rows)
    FROM lane l
    CROSS JOIN LATERAL (SELECT count(*) AS rows FROM centile_store.bucket_counts c WHERE c.ranking_id = p_ranking_id AND c.lane = l.lane) c
    WHERE c.rows <> 1
    UNION ALL
    SELECT 'lane rows', 101, format('lane %s of the board', l.lane), to_jsonb(1), to_jsonb(b.rows)
    FROM lane l
    CROSS JOIN LATERAL (SELECT count(*) AS rows FROM centile_store.board_lanes b
                        WHERE b.board_id = v_ranking.board_id AND b.lane = l.lane) b
    WHERE b.rows <> 1
    UNION ALL
    -- Nobody adds these up.
    SELECT 'lane rows', 102, format('%s of lane %s, which the board has not', x.what, x.lane), to_jsonb(0), to_jsonb(count(*))
    FROM (SELECT 'stripe counts' AS what, c.lane FROM centile_store.stripe_counts c WHERE c.ranking_id = p_ranking_id
          UNION ALL
          SELECT 'bucket counts', c.lane FROM centile_store.bucket_counts c WHERE c.ranking_id = p_ranking_id) x
    WHERE x.lane NOT BETWEEN 0 AND v_ranking.lanes - 1
    GROUP BY x.what, x.lane
    UNION ALL
    SELECT 'lane rows', 103, 'lanes of the ranking', to_jsonb(b.lanes), to_jsonb(v_ranking.lanes)
    FROM centile_store.boards b WHERE b.id = v_ranking.board_id AND b.lanes <> v_ranking.lanes
    UNION ALL
    -- A cut-off takes its number from the lane's row: what is above it would not be in the archive.
    SELECT 'lane rows', 104, format('last batch and time of lane %s of the board', b.lane), jsonb_build_array(t.batch, t.at), jsonb_build_array(b.batch, b.last_at)
    FROM (SELECT t.lane, max(t.batch) AS batch, max(t.occurred_at) AS at
          FROM centile_store.score_transactions t WHERE t.board_id = v_ranking.board_id GROUP BY t.lane) t
    JOIN centile_store.board_lanes b ON b.board_id = v_ranking.board_id AND b.lane = t.lane
    WHERE b.batch < t.batch OR b.last_at < t.at;
END
$$;

COMMENT ON FUNCTION centile_store.layout_differences(bigint) IS
'What is wrong with a ranking''s layout and with its rows per lane. Example: SELECT * FROM centile_store.layout_differences(1);';
