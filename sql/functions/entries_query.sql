-- The text names only tables, because an archive is defined by it and outlives these functions.
-- p_batches: an expression for the last batch of each lane that counts. p_user_ids: one for the
-- users; NULL for all. p_board_id: one for the board, in a period of a template.
-- p_boards: one for several of its boards; each user_id then is board id * 2^32 + user id. A segment has the players who belong to it at the end of the period.
CREATE OR REPLACE FUNCTION centile_store.entries_query(p_period_id bigint, p_batches text DEFAULT NULL, p_user_ids text DEFAULT NULL, p_board_id text DEFAULT NULL, p_boards text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE
SET timezone = 'UTC'
SET datestyle = 'ISO'
AS $$
DECLARE
    v_period  centile_store.periods;
    v_board   centile_store.boards;
    v_counted text;
    v_members text := '';
    v_belongs text := '';
    v_time    text;
    v_ledger  text := 'centile_store.score_transactions';
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = v_period.board_id;

    IF p_boards IS NOT NULL THEN
        v_ledger := format('(SELECT t.id, (t.board_id::bigint << 32) + t.user_id AS user_id, t.kind, t.points, t.tiebreak, t.second_number, t.voids_id, t.occurred_at, t.lane, t.batch
                             FROM centile_store.score_transactions t WHERE t.board_id = ANY (%s))', p_boards);
    END IF;
    v_counted := CASE WHEN p_boards IS NULL THEN format('t.board_id = %s', coalesce(p_board_id, v_board.id::text)) ELSE 'true' END
        || CASE WHEN p_batches IS NOT NULL THEN format(' AND t.batch <= (%s)[t.lane + 1]', p_batches) ELSE '' END
        || CASE WHEN p_user_ids IS NOT NULL THEN format(' AND t.user_id = ANY (%s)', p_user_ids) ELSE '' END;
    v_time := format('t.occurred_at >= %L AND t.occurred_at < %L', v_period.starts_at, v_period.ends_at);
    IF v_period.segment <> '' THEN
        v_members := format($query$
            UNION ALL
            SELECT NULL, m.user_id, 'member', NULL, NULL FROM (
                SELECT DISTINCT ON (t.user_id) t.user_id, t.is_member FROM centile_store.segment_members t
                WHERE %s AND t.segment = %L AND t.changed_at < %L
                ORDER BY t.user_id, t.batch DESC) m
            WHERE m.is_member$query$, v_counted, v_period.segment, v_period.ends_at);
        v_belongs := ' AND p.is_member';
    END IF;

    -- The planner cannot turn a full join into a nested loop, whatever number of acts it expects.
    -- coalesce keeps the joins full.
    RETURN format($query$
        WITH act AS MATERIALIZED (
            SELECT t.id, t.user_id, t.kind, t.voids_id, t.occurred_at FROM %6$s t
            WHERE t.kind <> 'score' AND %1$s%3$s
        ), player AS (
            SELECT t.user_id, max(t.occurred_at) FILTER (WHERE t.kind = 'reset' AND %2$s) AS reset_at,
                   max(t.id) FILTER (WHERE t.kind = 'ban') > coalesce(max(t.id) FILTER (WHERE t.kind = 'unban'), 0) AS is_banned,
                   bool_or(t.kind = 'member') AS is_member
            FROM act t WHERE t.kind <> 'void' GROUP BY t.user_id
        ), s AS (
            SELECT t.id, t.user_id, t.points, %5$s AS tiebreak, t.occurred_at
            FROM (SELECT * FROM %6$s t WHERE t.kind = 'score' AND %1$s AND %2$s) t
            FULL JOIN player p ON p.user_id = t.user_id
            FULL JOIN (SELECT v.voids_id FROM act v WHERE v.kind = 'void') v ON v.voids_id = t.id
            WHERE coalesce(t.id IS NOT NULL AND v.voids_id IS NULL AND p.is_banned IS NOT TRUE
                           AND (p.reset_at IS NULL OR t.occurred_at >= p.reset_at)%4$s, false)
        )$query$, v_counted, v_time, v_members, v_belongs, CASE v_board.ties WHEN 'second' THEN 't.second_number' ELSE 't.tiebreak' END, v_ledger)
    || centile_store.entries_of(v_board);
END
$$;

COMMENT ON FUNCTION centile_store.entries_query(bigint, text, text, text, text) IS
'Text of the query for the entries of a period. Example: SELECT length(centile_store.entries_query(1)) > 100 AS is_long;';
