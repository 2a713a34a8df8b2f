-- Without p_until, the first step: up to the batches that are logged now. Later batches, which a
-- caller may name, are not: the log shows it if batches were missing. The first step of a call that
-- applies something is recorded.
CREATE OR REPLACE FUNCTION centile_store.apply_step(p_board text, p_until bigint[], OUT until bigint[], OUT is_done boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_board  centile_store.boards := centile_store.board_named(p_board);
    v_owner  integer := centile_store.owner_of(v_board.id);
    v_before bigint[];
BEGIN
    -- A caller in a transaction block must not hold locks while it is idle.
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    IF cardinality(p_until) <> v_board.lanes THEN
        RAISE EXCEPTION 'until must have a batch for each of the % lanes', v_board.lanes USING ERRCODE = 'CB422', DETAIL = 'until';
    END IF;
    until := ARRAY(SELECT least(u.batch, u.logged) FROM unnest(p_until, centile_store.logged_batches(v_owner)) WITH ORDINALITY AS u (batch, logged, place) ORDER BY u.place);
    -- Batches that another session applies meanwhile are not this call's work.
    PERFORM centile_store.lock_buckets(v_owner);
    v_before := centile_store.applied_batches(v_owner, v_board.lanes);
    is_done := (SELECT a.is_done FROM centile_store.apply_board(v_owner, p_until => until) a);
    PERFORM centile_store.note_act(session_user, 'apply', v_board.id, jsonb_build_object('batches', v_before), jsonb_build_object('until', until), 'bucket rows')
    WHERE p_until IS NULL AND centile_store.applied_batches(v_owner, v_board.lanes) <> v_before;
END
$$;

COMMENT ON FUNCTION centile_store.apply_step(text, bigint[]) IS
'One step of centile.apply. Example: SELECT s.is_done FROM centile_store.apply_step(''main'', NULL) s;';
GRANT EXECUTE ON FUNCTION centile_store.apply_step(text, bigint[]) TO centile_operator;
