-- The query names only tables of centile_store, so a refresh, also by pg_restore, gives the same
-- rows. p_entries: another query of the entries. Boards with ties `second` have a column tiebreak.
CREATE OR REPLACE FUNCTION centile_store.archive_query(p_period_id bigint, p_entries text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_ties     text;
    v_tiebreak text;
    v_order    text;
BEGIN
    SELECT b.ties, CASE b.tiebreak_order WHEN 'desc' THEN ', e.tie_key AS tiebreak' WHEN 'asc' THEN ', -e.tie_key AS tiebreak' ELSE '' END INTO STRICT v_ties, v_tiebreak
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE p.id = p_period_id;
    -- Without tiebreaks the tie key is the time, and times sort faster.
    v_order := 'e.rank_key DESC, ' || CASE WHEN v_ties IN ('tiebreak', 'second') THEN 'e.tie_key DESC' ELSE 'e.reached_at' END || ', e.user_id';
    RETURN format('SELECT row_number() OVER (ORDER BY %1$s) AS "position", %2$s AS rank, e.user_id, e.score, e.reached_at%4$s FROM (%3$s) e',
        v_order,
        CASE v_ties WHEN 'shared' THEN 'rank() OVER (ORDER BY e.rank_key DESC)' ELSE format('row_number() OVER (ORDER BY %s)', v_order) END,
        coalesce(p_entries, centile_store.entries_query(p_period_id,
            format('SELECT c.batches FROM centile_store.cut_offs c WHERE c.period_id = %s', p_period_id))), v_tiebreak);
END
$$;

COMMENT ON FUNCTION centile_store.archive_query(bigint, text) IS
'Text of the query that defines an archive. Example: SELECT centile_store.archive_query(2) LIKE ''SELECT row_number()%'' AS is_query;';
