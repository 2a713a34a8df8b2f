-- Each entry occurs once. The keys before are NULL for a new entry, the keys after for a deleted one.
-- p_batch: the new revision of changed counts; NULL keeps the old one. Skips damaged and released
-- rankings and those without bucket rows, and with p_batch those that are being built. The caller holds the bucket lock
-- (centile_store.lock_buckets), or no other session uses the rankings.
CREATE OR REPLACE FUNCTION centile_store.apply_changes(
    p_lane smallint, p_batch bigint, p_rankings bigint[], p_users bigint[], p_was_keys bigint[], p_was_ties bigint[], p_keys bigint[], p_ties bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_mergejoin = off
SET enable_nestloop = off
AS $$
DECLARE
    v_steps   record;
    v_from    integer := 1;
    v_missing bigint;
BEGIN
    -- Steps of a bucket: 1 updates, 2 deletes, 3 inserts; each names a change by its number.
    WITH layout AS MATERIALIZED (
        SELECT g.id, g.buckets, g.low_rank_keys FROM centile_store.rankings g
        WHERE g.id = ANY (p_rankings) AND g.has_bucket_rows AND g.released_at IS NULL AND g.damaged_at IS NULL
          AND (p_batch IS NULL OR EXISTS (SELECT FROM centile_store.current_rankings c WHERE c.id = g.id))
    ), change AS (
        SELECT c.*, l.buckets, l.low_rank_keys, width_bucket(c.was_rank_key, l.low_rank_keys) AS was_place, width_bucket(c.rank_key, l.low_rank_keys) AS place
        FROM unnest(p_rankings, p_users, p_was_keys, p_was_ties, p_keys, p_ties) WITH ORDINALITY
            AS c (ranking_id, user_id, was_rank_key, was_tie_key, rank_key, tie_key, n)
        JOIN layout l ON l.id = c.ranking_id
        WHERE c.was_rank_key IS DISTINCT FROM c.rank_key OR c.was_tie_key IS DISTINCT FROM c.tie_key
        OFFSET 0
    ), placed AS MATERIALIZED (
        -- Tie key and user key decide only if a bound has the same rank key.
        SELECT c.n::integer AS n, num_nonnulls(c.was_rank_key, c.rank_key) AS keys,
               CASE WHEN c.low_rank_keys[c.was_place] < c.was_rank_key THEN c.buckets[c.was_place]
                    WHEN c.was_rank_key IS NOT NULL THEN (centile_store.bucket_of(c.ranking_id, c.was_rank_key, c.was_tie_key, -c.user_id)).bucket END AS was_bucket,
               CASE WHEN c.low_rank_keys[c.place] < c.rank_key THEN c.buckets[c.place]
                    WHEN c.rank_key IS NOT NULL THEN (centile_store.bucket_of(c.ranking_id, c.rank_key, c.tie_key, -c.user_id)).bucket END AS bucket
        FROM change c
    ), step AS MATERIALIZED (
        SELECT p.bucket, 1 AS step, p.n FROM placed p WHERE p.was_bucket = p.bucket
        UNION ALL
        SELECT p.was_bucket, 2, p.n FROM placed p WHERE p.was_bucket IS DISTINCT FROM p.bucket AND p.was_bucket IS NOT NULL
        UNION ALL
        SELECT p.bucket, 3, p.n FROM placed p WHERE p.was_bucket IS DISTINCT FROM p.bucket AND p.bucket IS NOT NULL
    )
    SELECT p.*, x.*, b.*, c.* INTO v_steps
    FROM (SELECT array_agg(s.n) AS numbers FROM (SELECT s.n FROM step s ORDER BY s.bucket, s.step) s) p
    CROSS JOIN (SELECT coalesce(sum(p.keys - num_nonnulls(p.was_bucket, p.bucket)), 0) AS without_bucket FROM placed p) x
    CROSS JOIN (SELECT array_agg(b.bucket) AS buckets, array_agg(b.updates) AS updates, array_agg(b.deletes) AS deletes, array_agg(b.inserts) AS inserts
                FROM (SELECT s.bucket, (count(*) FILTER (WHERE s.step = 1))::integer AS updates, (count(*) FILTER (WHERE s.step = 2))::integer AS deletes,
                             (count(*) FILTER (WHERE s.step = 3))::integer AS inserts
                      FROM step s GROUP BY s.bucket ORDER BY s.bucket) b) b
    CROSS JOIN (SELECT array_agg(c.ranking_id) AS count_rankings, array_agg(c.bucket) AS count_buckets, array_agg(c.change) AS count_changes
                FROM (SELECT p_rankings[s.n] AS ranking_id, s.bucket, sum(CASE s.step WHEN 2 THEN -1 ELSE 1 END)::integer AS change
                      FROM step s WHERE s.step > 1 GROUP BY p_rankings[s.n], s.bucket) c
                WHERE c.change <> 0) c;
    v_missing := v_steps.without_bucket;
    -- PostgreSQL finds an element directly only in an array without NULLs.
    p_was_keys := array_replace(p_was_keys, NULL, 0);
    p_was_ties := array_replace(p_was_ties, NULL, 0);
    p_keys := array_replace(p_keys, NULL, 0);
    p_ties := array_replace(p_ties, NULL, 0);
    -- One bucket table at a time: a statement on the parent would open all hundred.
    FOR n IN 1..coalesce(cardinality(v_steps.buckets), 0) LOOP
        v_missing := v_missing + v_steps.updates[n] + v_steps.deletes[n] - centile_store.change_bucket_rows(
            v_steps.buckets[n], p_lane, v_steps.numbers, v_from, v_from + v_steps.updates[n], v_from + v_steps.updates[n] + v_steps.deletes[n],
            v_from + v_steps.updates[n] + v_steps.deletes[n] + v_steps.inserts[n] - 1, p_rankings, p_users, p_was_keys, p_was_ties, p_keys, p_ties);
        v_from := v_from + v_steps.updates[n] + v_steps.deletes[n] + v_steps.inserts[n];
    END LOOP;
    IF v_missing <> 0 THEN
        RAISE EXCEPTION '% bucket rows or buckets are missing', v_missing
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    IF v_steps.count_rankings IS NOT NULL THEN
        PERFORM centile_store.change_counts(p_lane, p_batch, v_steps.count_rankings, v_steps.count_buckets, v_steps.count_changes);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.apply_changes(smallint, bigint, bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) IS
'Changes bucket rows and bucket counts of a lane after entries have changed. Example: SELECT centile_store.apply_changes(0::smallint, NULL, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
