-- Whole buckets, and rows in the bucket of the key. In plpgsql, which keeps its plans: every
-- statement that calls a SQL function with a sub-select plans it again.
CREATE OR REPLACE FUNCTION centile_store.count_above(p_ranking_id bigint, p_key centile_store.rank_key) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_totals bigint[];
    v_bucket record;
    v_count  bigint;
    v_above  bigint;
BEGIN
    SELECT * INTO v_bucket FROM centile_store.above_in_bucket(p_ranking_id, p_key.rank_key, p_key.tie_key, p_key.user_key);
    IF v_bucket.bucket = 100 THEN
        RETURN v_bucket.counted[2];
    END IF;
    v_totals := centile_store.bucket_totals(p_ranking_id);
    IF v_totals IS NULL THEN
        RETURN 0;
    END IF;
    v_above := CASE WHEN v_bucket.from_below THEN v_totals[v_bucket.place] - v_bucket.counted[2] ELSE v_bucket.counted[2] END;
    FOREACH v_count IN ARRAY v_totals[v_bucket.place + 1:] LOOP
        v_above := v_above + v_count;
    END LOOP;
    IF v_above IS NULL THEN
        RAISE EXCEPTION 'the counts of ranking % are incomplete', p_ranking_id
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    RETURN v_above;
END
$$;

COMMENT ON FUNCTION centile_store.count_above(bigint, centile_store.rank_key) IS
'Players of a ranking above a key. Example: SELECT centile_store.count_above(r.ranking_id, (100, 0, 0)) FROM centile.periods r LIMIT 1;';
