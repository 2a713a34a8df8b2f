-- Compares the recorded segments of the players of an open whole period with their attributes, and
-- looks for segments without a ranking. Segments and attributes may differ while a move is pending,
-- and in a period that ends: its players keep the segments that they had at its end.
CREATE OR REPLACE FUNCTION centile_store.segment_differences(p_period_id bigint, p_limit integer)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
SET work_mem = '64MB'
AS $$
DECLARE
    v_period centile_store.periods;
    v_board  centile_store.boards;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    SELECT * INTO STRICT v_board FROM centile_store.boards b WHERE b.id = v_period.board_id;
    IF v_board.segments = '{}' THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH member AS (
        SELECT DISTINCT ON (m.user_id, m.segment) m.user_id, m.segment, m.is_member
        FROM centile_store.segment_members m
        WHERE m.board_id = v_board.id AND m.changed_at < v_period.ends_at
        ORDER BY m.user_id, m.segment, m.batch DESC
    ), player AS MATERIALIZED (
        SELECT l.user_id, bool_or(m.segment = '') AS is_known, coalesce(array_agg(m.segment ORDER BY m.segment) FILTER (WHERE m.segment <> ''), '{}') AS segments
        FROM centile_store.leaderboard l
        LEFT JOIN member m ON m.user_id = l.user_id AND m.is_member
        WHERE l.ranking_id = v_period.ranking_id
        GROUP BY l.user_id
    ), different AS (
        SELECT centile_store.player_label(p.user_id) AS subject, to_jsonb(w.segments) AS expected, CASE WHEN p.is_known THEN to_jsonb(p.segments) END AS found
        FROM player p
        JOIN centile_store.users u ON u.id = p.user_id
        CROSS JOIN LATERAL (SELECT ARRAY(SELECT (a.name || ':' || (u.attributes ->> a.name)) COLLATE "C" FROM unnest(v_board.segments) AS a (name)
                                         WHERE u.attributes ? a.name ORDER BY 1) AS segments) w
        WHERE p.is_known IS NOT TRUE
           OR (v_period.ends_at = 'infinity' AND w.segments <> p.segments
               AND NOT EXISTS (SELECT FROM centile_store.attribute_moves m WHERE m.user_id = p.user_id))
        UNION ALL
        SELECT 'segment ' || s.segment, to_jsonb('a ranking'::text), NULL
        FROM (SELECT DISTINCT x.segment FROM player p CROSS JOIN unnest(p.segments) AS x (segment)) s
        WHERE NOT EXISTS (SELECT FROM centile_store.periods o
                          WHERE o.board_id = v_board.id AND o.kind = v_period.kind AND o.label = v_period.label AND o.segment = s.segment)
    )
    SELECT 'segments', d.subject, d.expected, d.found, d.total
    FROM (SELECT d.*, count(*) OVER () AS total FROM different d ORDER BY d.subject LIMIT p_limit) d;
END
$$;

COMMENT ON FUNCTION centile_store.segment_differences(bigint, integer) IS
'Players of an open period whose recorded segments are not those of their attributes, and segments without a ranking. Example: SELECT * FROM centile_store.segment_differences(1, 10);';
