-- On the worker that has the lane, in a transaction of its own. Only the caller writes the ranking.
-- Fails while the worker has not committed the ranking's layout: the coordinator may have lost the
-- connection for that commit.
CREATE OR REPLACE FUNCTION centile_store.catch_up(
    p_ranking_id bigint, p_lane smallint, p_after bigint, p_up_to bigint, p_after_user bigint DEFAULT 0, p_limit integer DEFAULT 2000,
    OUT players bigint, OUT last_user bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_answer record;
    v_values bigint[];
BEGIN
    SELECT r.* INTO STRICT v_answer
    FROM centile_lanes.groups g
    JOIN centile_store.rankings k ON k.id = p_ranking_id
    CROSS JOIN LATERAL run_command_on_placements(format('centile_lanes.%I', 'board_lanes_' || g.number)::regclass, format(
        'SELECT CASE WHEN (SELECT k.layout FROM centile_store.rankings k WHERE k.id = %2$s) = %7$s
                     THEN (SELECT ARRAY[c.players, c.last_user] FROM centile_store.catch_up(%2$s, %1$s::smallint, %3$s, %4$s, %5$s, %6$s) c) END
         FROM (SELECT centile_lanes.hold(%1$s) OFFSET 0) h',
        p_lane, p_ranking_id, p_after, p_up_to, p_after_user, p_limit, k.layout)) r
    WHERE p_lane = ANY (g.lanes);
    IF NOT v_answer.success THEN
        RAISE EXCEPTION 'the worker that has lane % failed: %', p_lane, v_answer.result USING ERRCODE = 'CB001', HINT = 'Retry.';
    ELSIF v_answer.result = '' THEN
        RAISE EXCEPTION 'the worker that has lane % has an older layout', p_lane USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    v_values := v_answer.result;
    players := v_values[1];
    last_user := v_values[2];
END
$$;

COMMENT ON FUNCTION centile_store.catch_up(bigint, smallint, bigint, bigint, bigint, integer) IS
'Updates players of an unfinished ranking from the ledger.';
