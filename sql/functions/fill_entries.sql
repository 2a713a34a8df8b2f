-- Uses the current ledger rows; catch_up adds later ones. Yields to writers every 1,000 rows.
CREATE OR REPLACE FUNCTION centile_store.fill_entries(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '128MB'
-- The planner underestimates the rows of a function, and would choose a nested loop.
SET enable_nestloop = off
AS $$
DECLARE
    v_entries bigint;
BEGIN
    INSERT INTO centile_store.leaderboard (ranking_id, user_id, score, rank_key, tie_key, reached_at, lane, only_zeros)
    SELECT p_ranking_id, e.user_id, e.score, e.rank_key, e.tie_key, e.reached_at, e.lane, e.only_zeros
    FROM (SELECT e.*, row_number() OVER () AS n
          FROM (SELECT e.*, u.lane_hash % g.lanes AS lane
                FROM centile_store.rankings g
                CROSS JOIN LATERAL centile.entries_from_ledger(g.period_id) e
                JOIN centile_store.users u ON u.id = e.user_id
                WHERE g.id = p_ranking_id
                ORDER BY e.user_id) e) e
    WHERE e.n % 1000 <> 0 OR centile_store.yield_to_writers();
    GET DIAGNOSTICS v_entries = ROW_COUNT;
    RETURN v_entries;
END
$$;

COMMENT ON FUNCTION centile_store.fill_entries(bigint) IS
'Writes the entries of a new ranking from the ledger, and returns their number. Example: SELECT r.ranking_id IS NOT NULL AS is_begun, centile_store.fill_entries(r.ranking_id) AS entries FROM centile_store.begin_rebuild(1) r;';
