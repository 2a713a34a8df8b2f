-- Moves up to p_rows rows of a bucket, those nearest to p_bound, which is the bound between the two
-- buckets. Reads one row more. "lower" and "upper" are the rows on both sides of the new boundary;
-- NULL if all rows moved.
CREATE OR REPLACE FUNCTION centile_store.move_rows(
    p_ranking_id bigint, p_from_bucket smallint, p_to_bucket smallint, p_bound centile_store.rank_key, p_up boolean, p_rows integer,
    OUT moved integer, OUT lanes smallint[], OUT moved_by_lane integer[], OUT lower centile_store.rank_key, OUT upper centile_store.rank_key)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_done record;
BEGIN
    -- The bound ends the scan, so that it does not pass rows that are gone.
    EXECUTE format($query$
        WITH near AS MATERIALIZED (
            SELECT ctid AS place, lane, rank_key, tie_key, user_key, row_number() OVER (ORDER BY rank_key %3$s, tie_key %3$s, user_key %3$s) AS n
            FROM centile_store.%1$I
            WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) %4$s (($2).rank_key, ($2).tie_key, ($2).user_key)
            ORDER BY rank_key %3$s, tie_key %3$s, user_key %3$s LIMIT $3::bigint + 1
        ), gone AS (
            DELETE FROM centile_store.%1$I b USING near n WHERE b.ctid = n.place AND n.n <= $3
            RETURNING b.lane, b.rank_key, b.tie_key, b.user_key
        ), placed AS (
            INSERT INTO centile_store.%2$I (bucket, lane, ranking_id, rank_key, tie_key, user_key)
            SELECT $4, g.lane, $1, g.rank_key, g.tie_key, g.user_key FROM gone g
            RETURNING lane
        ), by_lane AS (
            SELECT p.lane, count(*)::integer AS rows FROM placed p GROUP BY p.lane
        )
        SELECT coalesce((SELECT sum(l.rows) FROM by_lane l), 0)::integer AS moved,
               ARRAY(SELECT l.lane FROM by_lane l ORDER BY l.lane) AS lanes, ARRAY(SELECT l.rows FROM by_lane l ORDER BY l.lane) AS moved_by_lane,
               (l.rank_key, l.tie_key, l.user_key)::centile_store.rank_key AS lower, (u.rank_key, u.tie_key, u.user_key)::centile_store.rank_key AS upper
        FROM (SELECT max(n.n) FILTER (WHERE n.n <= $3) AS n FROM near n) last
        LEFT JOIN near u ON u.n = last.n + $5
        LEFT JOIN near l ON l.n = last.n + 1 - $5
        $query$, centile_store.bucket_table(p_from_bucket), centile_store.bucket_table(p_to_bucket),
        CASE WHEN p_up THEN 'DESC' ELSE 'ASC' END, CASE WHEN p_up THEN '<' ELSE '>=' END)
    INTO v_done
    USING p_ranking_id, p_bound, p_rows, p_to_bucket, CASE WHEN p_up THEN 0 ELSE 1 END;
    moved := v_done.moved;
    lanes := v_done.lanes;
    moved_by_lane := v_done.moved_by_lane;
    lower := v_done.lower;
    upper := v_done.upper;
END
$$;

COMMENT ON FUNCTION centile_store.move_rows(bigint, smallint, smallint, centile_store.rank_key, boolean, integer) IS
'Moves rows of a bucket to an adjacent one. Called by centile_store.move_boundary. Example: SELECT moved FROM centile_store.move_rows(1, 0::smallint, 2::smallint, (100, -9223372036854775808, -9223372036854775808), true, 1);';
