-- Sets the counts of a bucket's stripes: lane 0 takes them all. Under the exclusive structure lock, which no lane shares.
CREATE FUNCTION centile_store.put_stripe_counts(p_ranking_id bigint, p_bucket smallint, p_players bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
BEGIN
    UPDATE centile_store.stripe_counts s
    SET counts = CASE WHEN s.lane = 0 THEN p_players::integer[] ELSE array_fill(0, ARRAY[cardinality(p_players)]) END,
        revision = s.revision + 1
    -- Of the versions that a snapshot held elsewhere keeps, the newest of each lane.
    FROM (SELECT n AS lane, (SELECT x.revision FROM centile_store.stripe_counts x
                             WHERE x.ranking_id = p_ranking_id AND x.bucket = p_bucket AND x.lane = n ORDER BY x.revision DESC LIMIT 1) AS revision
          FROM centile_store.rankings g CROSS JOIN generate_series(0, g.lanes - 1) AS n
          WHERE g.id = p_ranking_id OFFSET 0) n
    WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket AND s.lane = n.lane AND s.revision = n.revision;
    IF NOT FOUND THEN
        INSERT INTO centile_store.stripe_counts (ranking_id, bucket, lane, counts)
        SELECT p_ranking_id, p_bucket, n, CASE WHEN n = 0 THEN p_players::integer[] ELSE array_fill(0, ARRAY[cardinality(p_players)]) END
        FROM centile_store.rankings g CROSS JOIN generate_series(0, g.lanes - 1) AS n
        WHERE g.id = p_ranking_id;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.put_stripe_counts(bigint, smallint, bigint[]) IS
'Sets the counts of the stripes of a bucket. Example: SELECT centile_store.put_stripe_counts(1, 50::smallint, centile_store.stripe_totals(1, 50::smallint));';
