-- Sets the counts of a bucket's stripes: lane 0 takes them all. Under the exclusive structure lock, which no lane shares.
CREATE FUNCTION centile_store.put_stripe_counts(p_ranking_id bigint, p_bucket smallint, p_players bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_lanes integer := (SELECT g.lanes FROM centile_store.rankings g WHERE g.id = p_ranking_id);
    v_found boolean := false;
BEGIN
    FOR v_lane IN 0..v_lanes - 1 LOOP
        UPDATE centile_store.stripe_counts s
        SET counts = CASE WHEN s.lane = 0 THEN p_players::integer[] ELSE array_fill(0, ARRAY[cardinality(p_players)]) END,
            revision = s.revision + 1
        -- Of the versions that a snapshot held elsewhere keeps, the newest, met by its place (see place_entries).
        WHERE s.ctid = (SELECT x.ctid FROM centile_store.stripe_counts x
                        WHERE x.ranking_id = p_ranking_id AND x.bucket = p_bucket AND x.lane = v_lane ORDER BY x.revision DESC LIMIT 1);
        v_found := v_found OR FOUND;
    END LOOP;
    IF NOT v_found THEN
        INSERT INTO centile_store.stripe_counts (ranking_id, bucket, lane, counts)
        SELECT p_ranking_id, p_bucket, n, CASE WHEN n = 0 THEN p_players::integer[] ELSE array_fill(0, ARRAY[cardinality(p_players)]) END
        FROM generate_series(0, v_lanes - 1) AS n;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.put_stripe_counts(bigint, smallint, bigint[]) IS
'Sets the counts of the stripes of a bucket. Example: SELECT centile_store.put_stripe_counts(1, 50::smallint, centile_store.stripe_totals(1, 50::smallint));';
