-- The one place that changes standings: entries, bucket rows and counts together, so that their numbers always agree. The
-- caller holds the board's structure lock and the lane's row. Gives the rankings in which a stripe should be split.
CREATE FUNCTION centile_store.place_entries(p_lane smallint, p_changes centile_store.entry_change[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
-- Every look-up here is by key, whatever was known of the tables when the plans were made.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_expected bigint;
    v_removed  bigint;
    v_crowded  bigint[];
BEGIN
    DELETE FROM centile_store.leaderboard l
    USING unnest(p_changes) AS c
    WHERE c.score IS NULL AND l.ranking_id = c.ranking_id AND l.user_id = c.user_id;

    INSERT INTO centile_store.leaderboard AS l (ranking_id, user_id, score, rank_key, tie_key, reached_at, only_zeros)
    SELECT c.ranking_id, c.user_id, c.score, c.rank_key, c.tie_key, c.reached_at, c.only_zeros
    FROM unnest(p_changes) AS c
    WHERE c.score IS NOT NULL
    ON CONFLICT ON CONSTRAINT leaderboard_pkey DO UPDATE
    SET score = excluded.score, rank_key = excluded.rank_key, tie_key = excluded.tie_key,
        reached_at = excluded.reached_at, only_zeros = excluded.only_zeros;

    WITH change AS (
        SELECT * FROM unnest(p_changes) AS c
        WHERE (c.was_rank_key, c.was_tie_key) IS DISTINCT FROM (c.rank_key, c.tie_key)
    ), leaving AS (
        SELECT c.ranking_id, c.was_rank_key, c.was_tie_key, c.user_id, s.bucket, s.stripe
        FROM change c
        CROSS JOIN LATERAL (
            SELECT bucket, stripe FROM centile_store.stripes s
            WHERE s.ranking_id = c.ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (c.was_rank_key, c.was_tie_key, -c.user_id)
            ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1) s
        WHERE c.was_rank_key IS NOT NULL
    ), arriving AS (
        SELECT c.ranking_id, c.rank_key, c.tie_key, c.user_id, s.bucket, s.stripe
        FROM change c
        CROSS JOIN LATERAL (
            SELECT bucket, stripe FROM centile_store.stripes s
            WHERE s.ranking_id = c.ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (c.rank_key, c.tie_key, -c.user_id)
            ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1) s
        WHERE c.rank_key IS NOT NULL
    ), removed AS (
        DELETE FROM centile_store.leaderboard_bucket b
        USING leaving o
        WHERE b.bucket = o.bucket AND b.ranking_id = o.ranking_id
          AND b.rank_key = o.was_rank_key AND b.tie_key = o.was_tie_key AND b.user_key = -o.user_id
        RETURNING 1
    ), added AS (
        INSERT INTO centile_store.leaderboard_bucket (bucket, ranking_id, rank_key, tie_key, user_key)
        SELECT bucket, ranking_id, rank_key, tie_key, -user_id FROM arriving
    ), net AS (
        SELECT ranking_id, bucket, stripe, sum(change) AS change
        FROM (SELECT ranking_id, bucket, stripe, -1 AS change FROM leaving
              UNION ALL
              SELECT ranking_id, bucket, stripe, 1 FROM arriving) x
        GROUP BY ranking_id, bucket, stripe
        HAVING sum(change) <> 0
    ), stripes_counted AS (
        UPDATE centile_store.stripe_counts c
        SET counts = centile_store.add_at(c.counts, n.places, n.changes), revision = c.revision + 1
        FROM (SELECT ranking_id, bucket, array_agg(stripe) AS places, array_agg(change::integer) AS changes
              FROM net GROUP BY ranking_id, bucket) n
        CROSS JOIN LATERAL (
            SELECT x.revision FROM centile_store.stripe_counts x
            WHERE x.ranking_id = n.ranking_id AND x.bucket = n.bucket AND x.lane = p_lane ORDER BY x.revision DESC LIMIT 1) x
        WHERE c.ranking_id = n.ranking_id AND c.bucket = n.bucket AND c.lane = p_lane AND c.revision = x.revision
    ), buckets_counted AS (
        UPDATE centile_store.bucket_counts c
        SET counts = centile_store.add_at(c.counts, n.places, n.changes), revision = c.revision + 1
        FROM (SELECT ranking_id, array_agg(bucket + 1) AS places, array_agg(change) AS changes
              FROM (SELECT ranking_id, bucket, sum(change)::bigint AS change FROM net GROUP BY ranking_id, bucket) b
              WHERE change <> 0 GROUP BY ranking_id) n
        CROSS JOIN LATERAL (
            SELECT x.revision FROM centile_store.bucket_counts x
            WHERE x.ranking_id = n.ranking_id AND x.lane = p_lane ORDER BY x.revision DESC LIMIT 1) x
        WHERE c.ranking_id = n.ranking_id AND c.lane = p_lane AND c.revision = x.revision
    ), fullest AS (
        -- Of each ranking the stripe that gains most: where many arrive, it is the one that grows out of its size.
        SELECT DISTINCT ON (ranking_id) ranking_id, bucket, stripe, change FROM net WHERE change > 0
        ORDER BY ranking_id, change DESC
    )
    SELECT (SELECT count(*) FROM leaving), (SELECT count(*) FROM removed),
           (SELECT array_agg(f.ranking_id) FROM fullest f
            JOIN centile_store.rankings g ON g.id = f.ranking_id
            JOIN centile_store.boards b ON b.id = g.board_id
            WHERE f.change + (
                SELECT sum(s.players) FROM generate_series(0, g.lanes - 1) AS n
                CROSS JOIN LATERAL (
                    SELECT s.counts[f.stripe] AS players FROM centile_store.stripe_counts s
                    WHERE s.ranking_id = f.ranking_id AND s.bucket = f.bucket AND s.lane = n ORDER BY s.revision DESC LIMIT 1) s
            ) > 2 * b.stripe_target)
    INTO v_expected, v_removed, v_crowded;

    IF v_removed <> v_expected THEN
        RAISE EXCEPTION 'bucket rows are missing: % of % found', v_removed, v_expected
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;
    RETURN v_crowded;
END
$$;

COMMENT ON FUNCTION centile_store.place_entries(smallint, centile_store.entry_change[]) IS
'Puts entries where they belong: leaderboard, bucket rows and counts in one go; gives the rankings with a stripe to be split. Example: SELECT centile_store.place_entries(0::smallint, ''{}'');';
