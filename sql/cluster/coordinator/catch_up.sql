-- On the worker that has the lane, in a transaction of its own. Only the caller writes the ranking.
CREATE OR REPLACE FUNCTION centile_store.catch_up(
    p_ranking_id bigint, p_lane smallint, p_after bigint, p_up_to bigint, p_after_user bigint DEFAULT 0, p_limit integer DEFAULT 2000,
    OUT players bigint, OUT last_user bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_answer record;
BEGIN
    SELECT r.* INTO STRICT v_answer
    FROM centile_lanes.groups g
    CROSS JOIN LATERAL run_command_on_placements(format('centile_lanes.%I', 'board_lanes_' || g.number)::regclass, format(
        'SELECT (SELECT ARRAY[c.players, c.last_user] FROM centile_store.catch_up(%2$s, %1$s::smallint, %3$s, %4$s, %5$s, %6$s) c)
         FROM (SELECT centile_lanes.hold(%1$s) OFFSET 0) h',
        p_lane, p_ranking_id, p_after, p_up_to, p_after_user, p_limit)) r
    WHERE p_lane = ANY (g.lanes);
    IF NOT v_answer.success THEN
        RAISE EXCEPTION 'the worker that has lane % failed: %', p_lane, v_answer.result USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    players := (v_answer.result::bigint[])[1];
    last_user := (v_answer.result::bigint[])[2];
END
$$;

COMMENT ON FUNCTION centile_store.catch_up(bigint, smallint, bigint, bigint, bigint, integer) IS
'Updates players of an unfinished ranking from the ledger.';
