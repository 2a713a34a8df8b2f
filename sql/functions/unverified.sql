-- NULL if the ranking was not verified, or damage was found.
CREATE OR REPLACE FUNCTION centile_store.unverified(p_ranking_id bigint, OUT user_ids bigint[], OUT batches bigint[], OUT times timestamptz[])
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_verified record;
BEGIN
    SELECT v.*, g.board_id INTO v_verified
    FROM centile_store.verified_rankings v JOIN centile_store.rankings g ON g.id = v.ranking_id
    WHERE v.ranking_id = p_ranking_id AND v.ledger_end IS NOT NULL;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH new AS MATERIALIZED (
        -- The index by player would read all of the board; "+ 0" leaves the one by id.
        SELECT t.user_id, t.lane, t.batch, t.occurred_at AS at FROM centile_store.score_transactions t
        WHERE t.board_id + 0 = v_verified.board_id AND t.id > v_verified.ledger_end
        UNION ALL
        SELECT m.user_id, m.lane, m.batch, nullif(m.changed_at, '-infinity') FROM centile_store.segment_members m
        WHERE m.board_id = v_verified.board_id AND m.batch > v_verified.batches[m.lane + 1]
    ), lane AS (
        SELECT u.n, greatest(u.batch, max(w.batch)) AS batch, greatest(u.at, max(w.at)) AS at
        FROM unnest(v_verified.batches, v_verified.times) WITH ORDINALITY AS u (batch, at, n) LEFT JOIN new w ON w.lane = u.n - 1
        GROUP BY u.n, u.batch, u.at
    )
    SELECT ARRAY(SELECT DISTINCT w.user_id FROM new w), array_agg(l.batch ORDER BY l.n), array_agg(l.at ORDER BY l.n)
    INTO user_ids, batches, times FROM lane l;
END
$$;

COMMENT ON FUNCTION centile_store.unverified(bigint) IS
'Players with ledger rows since a ranking was last verified, and the last batch and time that each lane must have. Example: SELECT * FROM centile_store.unverified(1);';
