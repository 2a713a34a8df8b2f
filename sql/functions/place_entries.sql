-- The one place that changes standings: entries, bucket rows and counts together, so that their numbers always agree. The
-- caller holds the board's structure lock and the lane's row. Gives the rankings in which a stripe should be split, if p_look.
CREATE FUNCTION centile_store.place_entries(p_lane smallint, p_changes centile_store.entry_change[], p_look boolean DEFAULT true) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
-- Every look-up here is by key, whatever was known of the tables when the plans were made.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_ranking_ids bigint[];
    v_rank_keys   bigint[];
    v_tie_keys    bigint[];
    v_user_keys   bigint[];
    v_buckets     smallint[];
    v_stripes     integer[];
    -- 1 for a row that arrives, -1 for one that leaves.
    v_signs       smallint[];
    v_part        record;
    v_updated     bigint;
    v_expected    bigint := 0;
    v_removed     bigint := 0;
    v_crowded     bigint[];
BEGIN
    -- Most have an entry and keep one.
    UPDATE centile_store.leaderboard l
    SET score = c.score, rank_key = c.rank_key, tie_key = c.tie_key, reached_at = c.reached_at, only_zeros = c.only_zeros
    FROM unnest(p_changes) AS c
    WHERE c.is_last AND c.score IS NOT NULL AND c.was_rank_key IS NOT NULL AND l.ranking_id = c.ranking_id AND l.user_id = c.user_id;
    GET DIAGNOSTICS v_updated = ROW_COUNT;
    IF v_updated < cardinality(p_changes) THEN
        INSERT INTO centile_store.leaderboard (ranking_id, user_id, score, rank_key, tie_key, reached_at, only_zeros)
        SELECT c.ranking_id, c.user_id, c.score, c.rank_key, c.tie_key, c.reached_at, c.only_zeros
        FROM unnest(p_changes) AS c
        WHERE c.is_last AND c.score IS NOT NULL AND c.was_rank_key IS NULL;
        DELETE FROM centile_store.leaderboard l
        USING unnest(p_changes) AS c
        WHERE c.is_last AND c.score IS NULL AND l.ranking_id = c.ranking_id AND l.user_id = c.user_id;
    END IF;

    SELECT array_agg(k.ranking_id), array_agg(k.rank_key), array_agg(k.tie_key), array_agg(k.user_key), array_agg(s.bucket),
           array_agg(s.stripe), array_agg(k.sign)
    INTO v_ranking_ids, v_rank_keys, v_tie_keys, v_user_keys, v_buckets, v_stripes, v_signs
    FROM unnest(p_changes) AS c
    CROSS JOIN LATERAL (VALUES (c.ranking_id, c.was_rank_key, c.was_tie_key, -c.user_id, -1::smallint),
                               (c.ranking_id, c.rank_key, c.tie_key, -c.user_id, 1::smallint))
        AS k (ranking_id, rank_key, tie_key, user_key, sign)
    CROSS JOIN LATERAL (
        SELECT bucket, stripe FROM centile_store.stripes s
        WHERE s.ranking_id = k.ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (k.rank_key, k.tie_key, k.user_key)
        ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1) s
    WHERE c.is_last AND k.rank_key IS NOT NULL AND (c.was_rank_key, c.was_tie_key) IS DISTINCT FROM (c.rank_key, c.tie_key);

    -- A bucket at a time, by its own table: a statement on all hundred has to open all hundred, whatever it changes.
    FOR v_part IN
        SELECT k.bucket, count(*) FILTER (WHERE k.sign < 0) AS leaving,
               array_agg(k.ranking_id) AS ranking_ids, array_agg(k.rank_key) AS rank_keys, array_agg(k.tie_key) AS tie_keys,
               array_agg(k.user_key) AS user_keys, array_agg(k.sign) AS signs
        FROM unnest(v_buckets, v_ranking_ids, v_rank_keys, v_tie_keys, v_user_keys, v_signs)
            AS k (bucket, ranking_id, rank_key, tie_key, user_key, sign)
        GROUP BY k.bucket
    LOOP
        v_expected := v_expected + v_part.leaving;
        v_removed := v_removed + centile_store.replace_rows(v_part.bucket, v_part.ranking_ids, v_part.rank_keys,
            v_part.tie_keys, v_part.user_keys, v_part.signs);
    END LOOP;
    IF v_removed <> v_expected THEN
        RAISE EXCEPTION 'bucket rows are missing: % of % found', v_removed, v_expected
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;

    WITH net AS MATERIALIZED (
        SELECT k.ranking_id, k.bucket, k.stripe, sum(k.sign) AS change
        FROM unnest(v_ranking_ids, v_buckets, v_stripes, v_signs) AS k (ranking_id, bucket, stripe, sign)
        GROUP BY k.ranking_id, k.bucket, k.stripe
        HAVING sum(k.sign) <> 0
    ), stripe_change AS MATERIALIZED (
        -- The newest version alone is looked up, and then met by its place: older ones stay while somebody holds a snapshot, and by a key the
        -- planner may read them all, since it takes a table of few players for one of few rows. Nobody else changes rows of this lane.
        SELECT n.*, (SELECT x.ctid FROM centile_store.stripe_counts x
                     WHERE x.ranking_id = n.ranking_id AND x.bucket = n.bucket AND x.lane = p_lane ORDER BY x.revision DESC LIMIT 1) AS newest
        FROM (SELECT ranking_id, bucket, array_agg(stripe) AS places, array_agg(change::integer) AS changes
              FROM net GROUP BY ranking_id, bucket) n
        -- All of them: a number that is not known when this is planned lets few be expected.
        LIMIT cardinality(v_buckets)
    ), stripes_counted AS (
        UPDATE centile_store.stripe_counts c
        SET counts = centile_store.add_at(c.counts, n.places, n.changes), revision = c.revision + 1
        FROM stripe_change n
        WHERE c.ctid = n.newest
    ), bucket_change AS MATERIALIZED (
        SELECT n.*, (SELECT x.ctid FROM centile_store.bucket_counts x
                     WHERE x.ranking_id = n.ranking_id AND x.lane = p_lane ORDER BY x.revision DESC LIMIT 1) AS newest
        FROM (SELECT ranking_id, array_agg(bucket + 1) AS places, array_agg(change) AS changes
              FROM (SELECT ranking_id, bucket, sum(change)::bigint AS change FROM net GROUP BY ranking_id, bucket) b
              WHERE change <> 0 GROUP BY ranking_id) n
        LIMIT cardinality(v_buckets)
    )
    UPDATE centile_store.bucket_counts c
    SET counts = centile_store.add_at(c.counts, n.places, n.changes), revision = c.revision + 1
    FROM bucket_change n
    WHERE c.ctid = n.newest;

    IF p_look THEN
        -- Of each ranking the stripe that gained most: where many arrive, it is the one that grows out of its size.
        SELECT array_agg(f.ranking_id)
        INTO v_crowded
        FROM (
            SELECT DISTINCT ON (k.ranking_id) k.ranking_id, k.bucket, k.stripe
            FROM unnest(v_ranking_ids, v_buckets, v_stripes, v_signs) AS k (ranking_id, bucket, stripe, sign)
            GROUP BY k.ranking_id, k.bucket, k.stripe
            HAVING sum(k.sign) > 0
            ORDER BY k.ranking_id, sum(k.sign) DESC) f
        JOIN centile_store.rankings g ON g.id = f.ranking_id
        JOIN centile_store.boards b ON b.id = g.board_id
        WHERE 2 * b.stripe_target < (
            SELECT sum(s.players) FROM generate_series(0, g.lanes - 1) AS n
            CROSS JOIN LATERAL (
                SELECT s.counts[f.stripe] AS players FROM centile_store.stripe_counts s
                WHERE s.ranking_id = f.ranking_id AND s.bucket = f.bucket AND s.lane = n ORDER BY s.revision DESC LIMIT 1) s);
    END IF;

    RETURN v_crowded;
END
$$;

COMMENT ON FUNCTION centile_store.place_entries(smallint, centile_store.entry_change[], boolean) IS
'Puts entries where they belong: leaderboard, bucket rows and counts in one go; gives the rankings with a stripe to be split, if asked to look for them. Example: SELECT centile_store.place_entries(0::smallint, ''{}'');';
