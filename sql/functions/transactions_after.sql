-- A page of a board's ledger: rows with an id above p_ids[lane + 1], in the order of ids. A writer
-- draws ids only while it holds the lane's lock, and holds it until its commit. So every row that a
-- lane commits later has a higher id, and p_ids names an exact place in the ledger.
--
-- Reads each month by its primary key, from the lowest of p_ids on. Ids of events are read once per
-- player, because transaction_ids has no index by transaction. They are in one JSON object. If they
-- were rows, the planner would expect one row, and compare each id with each transaction. OFFSET 0
-- makes it look up each player; otherwise it would read all users, and all ids of the board.
CREATE OR REPLACE FUNCTION centile_store.transactions_after(p_board_id integer, p_ids bigint[], p_limit integer)
RETURNS TABLE (transaction_id bigint, lane smallint, batch bigint, user_id text, kind text, points bigint, tiebreak bigint, reason text,
    voids bigint, event_id text, occurred_at timestamptz, metadata text)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_after bigint := (SELECT min(i.id) FROM unnest(p_ids) AS i (id));
BEGIN
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT t.* FROM centile_store.score_transactions t
        WHERE t.board_id = p_board_id AND t.id > v_after AND t.id > p_ids[t.lane + 1]
        ORDER BY t.id LIMIT p_limit
    ), named AS MATERIALIZED (
        SELECT jsonb_object_agg(k.transaction_id, k.external_id) AS ids
        FROM (SELECT p.user_id, min(p.id) AS first, max(p.id) AS last FROM page p WHERE p.kind = 'score' GROUP BY p.user_id) u
        CROSS JOIN LATERAL (
            SELECT k.transaction_id, k.external_id FROM centile_store.transaction_ids k
            WHERE k.board_id = p_board_id AND k.user_id = u.user_id AND k.transaction_id BETWEEN u.first AND u.last
            OFFSET 0
        ) k
    )
    SELECT p.id, p.lane, p.batch, u.external_id, p.kind, p.points, coalesce(p.second_number, p.tiebreak), p.reason, p.voids_id,
           CASE WHEN u.erased_at IS NULL THEN n.ids ->> p.id::text END, p.occurred_at, CASE WHEN u.erased_at IS NULL THEN p.metadata::text END
    FROM page p
    CROSS JOIN named n
    CROSS JOIN LATERAL (SELECT u.external_id, u.erased_at FROM centile_store.users u WHERE u.id = p.user_id OFFSET 0) u
    ORDER BY p.id;
END
$$;

COMMENT ON FUNCTION centile_store.transactions_after(integer, bigint[], integer) IS
'Rows of a board''s ledger after an id in each lane, in the order of ids. Example: SELECT transaction_id, user_id, kind, points FROM centile_store.transactions_after(1, ''{0,0}'', 3);';
