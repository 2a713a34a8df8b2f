-- Opens the periods that hold the events of a load. All events of an hour lie between its first and its last, and no period is so short
-- that it could lie between those two. Takes the structure lock exclusively, for the rest of the transaction. Refuses a load in which a sum
-- would leave the range of bigint: before anything is written.
CREATE FUNCTION centile_store.open_load_periods(p_board_id integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET work_mem = '256MB'
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_limit constant numeric := 9223372036854775807;
    v_board    centile_store.boards;
    v_opened   integer;
    v_overflow record;
BEGIN
    v_opened := centile.open_periods(p_board_id, ARRAY(
        SELECT unnest(ARRAY[min(e.occurred_at), max(e.occurred_at)]) FROM pg_temp.load_event e GROUP BY date_trunc('hour', e.occurred_at)));
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    -- Only where all points together could get there are they added up player by player.
    IF v_board.mode = 'sum'
       AND (SELECT count(*) * greatest(max(e.points)::numeric, -min(e.points)::numeric) > v_limit FROM pg_temp.load_event e) THEN
        SELECT u.external_id, p.period INTO v_overflow
        FROM (SELECT e.user_id FROM pg_temp.load_event e GROUP BY e.user_id HAVING sum(abs(e.points::numeric)) > v_limit) r
        JOIN centile_store.users u ON u.id = r.user_id
        JOIN pg_temp.load_event e ON e.user_id = r.user_id
        CROSS JOIN LATERAL centile_store.periods_at(p_board_id, v_board.periods, e.occurred_at) p
        GROUP BY u.external_id, p.period_id, p.period
        HAVING abs(sum(e.points::numeric)) > v_limit
        ORDER BY u.external_id, p.period LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'the score of player % in % would leave the range of 64 bits', quote_literal(v_overflow.external_id), v_overflow.period
                USING ERRCODE = 'CB409', HINT = 'The ordinary import refuses the events that take it there, and takes the others.';
        END IF;
    END IF;
    RETURN v_opened;
END
$$;

COMMENT ON FUNCTION centile_store.open_load_periods(integer) IS
'Opens the periods that hold the events of a load. Example: SELECT centile_store.make_load_tables(), centile_store.open_load_periods(1);';
