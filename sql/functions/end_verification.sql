-- Several sessions may verify a ranking at once. One that found no difference changes nothing if
-- another has found damage since: p_damaged_at is the damage that was known in the snapshot of the
-- comparison. The last three arguments are the result of centile_store.begin_verification.
CREATE OR REPLACE FUNCTION centile_store.end_verification(
    p_ranking_id bigint, p_agrees boolean, p_damaged_at timestamptz, p_ledger_end bigint, p_batches bigint[], p_times timestamptz[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    INSERT INTO centile_store.verified_rankings AS v (ranking_id, ledger_end, batches, times, damaged_at)
    SELECT g.id, CASE WHEN p_agrees THEN p_ledger_end END, CASE WHEN p_agrees THEN p_batches END, CASE WHEN p_agrees THEN p_times END,
           CASE WHEN NOT p_agrees THEN clock_timestamp() END
    FROM centile_store.rankings g WHERE g.id = p_ranking_id
    FOR KEY SHARE
    ON CONFLICT ON CONSTRAINT verified_rankings_pkey DO UPDATE
    SET ledger_end = excluded.ledger_end, batches = excluded.batches, times = excluded.times, damaged_at = excluded.damaged_at
    WHERE NOT p_agrees OR (coalesce(v.ledger_end, 0) <= p_ledger_end AND v.damaged_at IS NOT DISTINCT FROM p_damaged_at)
$$;

COMMENT ON FUNCTION centile_store.end_verification(bigint, boolean, timestamptz, bigint, bigint[], timestamptz[]) IS
'Records up to which row of the ledger a ranking agrees with it, or that it is damaged. Example: SELECT centile_store.end_verification(1, true, NULL, b.ledger_end, b.batches, b.times) FROM centile_store.begin_verification(1) b;';
