-- The text names only tables, because an archive is defined by it and outlives these functions.
-- p_batches: an expression for the last batch of each lane that counts. p_user_ids: one for the
-- users; NULL for all. A segment has the players who belong to it at the end of the period.
CREATE OR REPLACE FUNCTION centile_store.entries_query(p_period_id bigint, p_batches text DEFAULT NULL, p_user_ids text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE
SET timezone = 'UTC'
SET datestyle = 'ISO'
AS $$
DECLARE
    v_period  centile_store.periods;
    v_board   centile_store.boards;
    v_counted text;
    v_members text := '';
    v_time    text;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = v_period.board_id;

    v_counted := format('t.board_id = %s', v_board.id)
        || CASE WHEN p_batches IS NOT NULL THEN format(' AND t.batch <= (%s)[t.lane + 1]', p_batches) ELSE '' END
        || CASE WHEN p_user_ids IS NOT NULL THEN format(' AND t.user_id = ANY (%s)', p_user_ids) ELSE '' END;
    IF v_period.segment <> '' THEN
        v_members := format('member AS MATERIALIZED (
            SELECT DISTINCT ON (m.user_id) m.user_id, m.is_member FROM centile_store.segment_members m
            WHERE m.board_id = %s AND m.segment = %L AND m.changed_at < %L%s%s
            ORDER BY m.user_id, m.batch DESC
        ), ', v_board.id, v_period.segment, v_period.ends_at,
            CASE WHEN p_batches IS NOT NULL THEN format(' AND m.batch <= (%s)[m.lane + 1]', p_batches) ELSE '' END,
            CASE WHEN p_user_ids IS NOT NULL THEN format(' AND m.user_id = ANY (%s)', p_user_ids) ELSE '' END);
        v_counted := v_counted || ' AND t.user_id IN (SELECT m.user_id FROM member m WHERE m.is_member)';
    END IF;
    v_time := format('t.occurred_at >= %L AND t.occurred_at < %L', v_period.starts_at, v_period.ends_at);

    RETURN format($query$
        WITH %3$sact AS MATERIALIZED (
            SELECT t.id, t.user_id, t.kind, t.voids_id, t.occurred_at FROM centile_store.score_transactions t
            WHERE t.kind <> 'score' AND %1$s
        ), last_reset AS (
            SELECT t.user_id, max(t.occurred_at) AS at FROM act t WHERE t.kind = 'reset' AND %2$s GROUP BY t.user_id
        ), banned AS (
            SELECT t.user_id FROM act t WHERE t.kind IN ('ban', 'unban')
            GROUP BY t.user_id HAVING max(t.id) FILTER (WHERE t.kind = 'ban') > coalesce(max(t.id) FILTER (WHERE t.kind = 'unban'), 0)
        ), s AS (
            SELECT t.id, t.user_id, t.points, t.tiebreak, t.occurred_at FROM centile_store.score_transactions t
            WHERE t.kind = 'score' AND %1$s AND %2$s
              AND t.id NOT IN (SELECT a.voids_id FROM act a WHERE a.kind = 'void')
              AND t.user_id NOT IN (SELECT b.user_id FROM banned b)
              AND (t.user_id NOT IN (SELECT r.user_id FROM last_reset r)
                   OR t.occurred_at >= (SELECT r.at FROM last_reset r WHERE r.user_id = t.user_id))
        )$query$, v_counted, v_time, v_members)
    || centile_store.entries_of(v_board);
END
$$;

COMMENT ON FUNCTION centile_store.entries_query(bigint, text, text) IS
'Text of the query for the entries of a period. Example: SELECT length(centile_store.entries_query(1)) > 100 AS is_long;';
