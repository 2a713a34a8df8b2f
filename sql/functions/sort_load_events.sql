-- Makes events of the lines of a load that are not refused, numbered by player, time and line: the order in which all keys of the ledger
-- grow, and in which the later of two lines wins where `latest` finds equal times. Returns how many there are.
CREATE FUNCTION centile_store.sort_load_events(p_board_id integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '256MB'
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_lanes  integer := (SELECT b.lanes FROM centile_store.boards b WHERE b.id = p_board_id);
    v_events bigint;
BEGIN
    ANALYZE pg_temp.load_refusal;
    INSERT INTO pg_temp.load_event (id, user_id, lane, points, tiebreak, reason, occurred_at, external_id)
    SELECT nextval('centile_store.score_transactions_id_seq'), e.user_id, e.lane, e.points, e.tiebreak, e.reason, e.at, e.id
    FROM (SELECT u.id AS user_id, u.lane_hash % v_lanes AS lane, l.points, l.tiebreak, l.reason, l.id, coalesce(l.occurred_at, p_now) AS at
          FROM pg_temp.load_line l
          JOIN centile_store.users u ON u.external_id = l.user_id
          WHERE l.line NOT IN (SELECT r.line FROM pg_temp.load_refusal r)
          ORDER BY u.id, coalesce(l.occurred_at, p_now), l.line) e;
    GET DIAGNOSTICS v_events = ROW_COUNT;
    ANALYZE pg_temp.load_event;
    RETURN v_events;
END
$$;

COMMENT ON FUNCTION centile_store.sort_load_events(integer, timestamptz) IS
'Numbers the events of a load. Example: SELECT centile_store.make_load_tables(), centile_store.sort_load_events(1, ''2024-02-01Z'');';
