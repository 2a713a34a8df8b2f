-- Writes the events of a load into the ledger, as the first batch of each lane that has any.
CREATE FUNCTION centile_store.write_load_ledger(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    INSERT INTO centile_store.score_transactions (id, board_id, user_id, kind, points, tiebreak, reason, occurred_at, lane, batch)
    OVERRIDING SYSTEM VALUE
    SELECT e.id, p_board_id, e.user_id, 'score', e.points, e.tiebreak, e.reason, e.occurred_at, e.lane, 1
    FROM pg_temp.load_event e;
    UPDATE centile_store.board_lanes AS l SET batch = 1, last_at = greatest(l.last_at, e.last_at)
    FROM (SELECT e.lane, max(e.occurred_at) AS last_at FROM pg_temp.load_event e GROUP BY e.lane) e
    WHERE l.board_id = p_board_id AND l.lane = e.lane;
END
$$;

COMMENT ON FUNCTION centile_store.write_load_ledger(integer) IS
'Writes the events of a load into the ledger. Example: SELECT centile_store.make_load_tables(), centile_store.write_load_ledger(1);';
