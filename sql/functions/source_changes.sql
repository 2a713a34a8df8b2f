-- Compares the sources of a combined board with those of its ranking. Counts at most p_limit scores, and reads
-- the ledger only if a lane has new batches.
CREATE OR REPLACE FUNCTION centile_store.source_changes(p_board_id integer, p_limit bigint, OUT any_changed boolean, OUT closed_changed boolean, OUT scores bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_state centile_store.combinations;
BEGIN
    SELECT * INTO STRICT v_state FROM centile_store.combinations WHERE board_id = p_board_id;
    SELECT coalesce(bool_or(changed), false), coalesce(bool_or(changed AND (r.is_final OR (r.period <> s.period AND NOT s.is_final))), false) INTO any_changed, closed_changed
    FROM centile_store.resolve_sources(p_board_id) r
    LEFT JOIN jsonb_to_recordset(v_state.sources) AS s (place smallint, board_id integer, period text, version text, is_final boolean) ON s.place = r.place
    CROSS JOIN LATERAL (SELECT (r.board_id, r.period, r.version, r.is_final) IS DISTINCT FROM (s.board_id, s.period, s.version, s.is_final) AS changed) x;
    scores := 0;
    IF p_limit > 0 AND EXISTS (
            SELECT FROM jsonb_each(v_state.source_batches) AS x (board, batches) JOIN centile_store.boards b ON b.id = x.board::integer
            WHERE to_jsonb(centile_store.lane_batches(b.id, b.lanes)) <> x.batches) THEN
        SELECT count(*) INTO scores
        FROM (SELECT FROM centile_store.score_transactions t
              WHERE t.id > v_state.ledger_start AND t.kind = 'score'
                AND t.batch > coalesce((v_state.source_batches -> t.board_id::text ->> t.lane)::bigint, 0)
                AND v_state.source_batches ? t.board_id::text
              LIMIT p_limit) t;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.source_changes(integer, bigint) IS
'What has changed in the sources of a combined board since its ranking was computed. Example: SELECT c.* FROM centile_store.source_changes(4, 10) c;';
