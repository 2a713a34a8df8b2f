-- Refuses lines of a load, for the reasons for which the service refuses events, and in the same words. An id that comes twice for a player
-- belongs to the first line that is not refused; further lines with the same content are repeated, others are a conflict.
CREATE FUNCTION centile_store.refuse_load_lines(p_board_id integer, p_now timestamptz) RETURNS TABLE (outcome text, lines bigint)
LANGUAGE plpgsql VOLATILE
SET work_mem = '256MB'
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    v_board  centile_store.boards;
    v_closed tstzrange[];
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    SELECT array_agg(tstzrange(p.starts_at, p.ends_at)) INTO v_closed FROM centile_store.periods p WHERE p.board_id = p_board_id AND p.state = 'closed';
    INSERT INTO pg_temp.load_refusal (line, outcome)
    SELECT * FROM (
        SELECT l.line,
               CASE
                   WHEN l.user_id IN (
                       SELECT u.external_id FROM centile_store.users u WHERE u.banned_at IS NOT NULL
                       UNION ALL
                       SELECT u.external_id FROM centile_store.board_players b JOIN centile_store.users u ON u.id = b.user_id
                       WHERE b.board_id = p_board_id AND b.banned) THEN 'banned'
                   WHEN l.points NOT BETWEEN v_board.points_min AND v_board.points_max THEN 'points_out_of_bounds'
                   WHEN l.tiebreak IS NOT NULL AND v_board.ties <> 'tiebreak' THEN 'tiebreak_not_used'
                   WHEN l.tiebreak NOT BETWEEN -2048 AND 2047 THEN 'tiebreak_out_of_range'
                   WHEN l.occurred_at > p_now THEN 'time_in_future'
                   WHEN coalesce(l.occurred_at, p_now) NOT BETWEEN '2000-01-01 00:00:00+00' AND '2071-01-01 00:00:00+00' THEN 'time_out_of_range'
                   WHEN v_closed IS NOT NULL AND EXISTS (SELECT FROM unnest(v_closed) AS c (times) WHERE c.times @> coalesce(l.occurred_at, p_now)) THEN 'period_closed'
               END AS outcome
        FROM pg_temp.load_line l) x
    WHERE x.outcome IS NOT NULL;

    INSERT INTO pg_temp.load_refusal (line, outcome)
    SELECT x.line, CASE WHEN x.first_content = x.content THEN 'repeated' ELSE 'id_conflict' END
    FROM (SELECT l.line, l.content, first_value(l.line) OVER same AS first_line, first_value(l.content) OVER same AS first_content
          FROM (SELECT l.line, l.user_id, l.id, jsonb_build_array(l.points, l.reason, l.tiebreak, l.occurred_at) AS content
                FROM pg_temp.load_line l
                WHERE (l.user_id, l.id) IN (SELECT d.user_id, d.id FROM pg_temp.load_line d WHERE d.id IS NOT NULL GROUP BY d.user_id, d.id HAVING count(*) > 1)
                  AND l.line NOT IN (SELECT r.line FROM pg_temp.load_refusal r)) l
          WINDOW same AS (PARTITION BY l.user_id, l.id ORDER BY l.line)) x
    WHERE x.first_line < x.line;
    RETURN QUERY SELECT r.outcome, count(*) FROM pg_temp.load_refusal r GROUP BY r.outcome;
END
$$;

COMMENT ON FUNCTION centile_store.refuse_load_lines(integer, timestamptz) IS
'Refuses lines of a load and says how many for which reason. Example: SELECT centile_store.make_load_tables(), (SELECT count(*) FROM centile_store.refuse_load_lines(1, ''2024-02-01Z'')) AS reasons;';
