-- Runs in the caller's transaction, and takes no lock that another session could wait for. The checks
-- are those of src/http/api/event.rs; rules that depend on the player are checked when the event is
-- written. Has a transaction id before it takes a number: see centile_store.boards_in_inbox.
CREATE OR REPLACE FUNCTION centile.submit(
    board text, user_id text, points bigint, id text DEFAULT NULL, tiebreak bigint DEFAULT NULL, reason text DEFAULT NULL, metadata json DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    c_text     constant text := '^[^\u0001-\u001f\u007f-\u009f]+$';
    v_event_id text := coalesce(id, gen_random_uuid()::text);
    v_board_id integer;
    v_slug     text;
    v_mode     text;
    v_ties     text;
    v_own      xid8;
    v_number   bigint;
BEGIN
    -- Most boards are found without a call of plpgsql.
    SELECT b.id, b.mode, b.ties INTO v_board_id, v_mode, v_ties FROM centile_store.boards b WHERE b.slug = board AND NOT b.is_template AND b.deleted_at IS NULL;
    IF NOT FOUND THEN
        SELECT n.id, b.mode, b.ties INTO v_board_id, v_mode, v_ties FROM centile_store.template_boards n JOIN centile_store.boards b ON b.id = n.template_id WHERE n.slug = board;
    END IF;
    IF NOT FOUND THEN
        -- The service creates the board: that takes a lock.
        v_slug := board;
        SELECT b.id, b.mode, b.ties INTO v_board_id, v_mode, v_ties FROM centile_store.boards b WHERE b.id = centile_store.template_of(board) AND board ~ '^[a-z][a-z0-9_-]{0,39}$';
    END IF;
    IF NOT FOUND THEN
        PERFORM centile_store.board_named(board);
    END IF;
    IF v_mode = 'combined' THEN
        RAISE EXCEPTION 'board % is computed from other boards: write to those', board USING ERRCODE = 'CB409', DETAIL = 'board_combined';
    ELSIF user_id IS NULL OR octet_length(user_id) > 128 OR user_id !~ c_text OR user_id IN ('.', '..') THEN
        RAISE EXCEPTION 'user_id must have 1 to 128 bytes and no control characters, and not be . or ..' USING ERRCODE = 'CB422', DETAIL = 'user_id';
    ELSIF points IS NULL OR points = -9223372036854775808 THEN
        RAISE EXCEPTION 'points must be a number of at least -9223372036854775807' USING ERRCODE = 'CB422', DETAIL = 'points';
    ELSIF octet_length(id) > 128 OR id !~ c_text THEN
        RAISE EXCEPTION 'id must have 1 to 128 bytes and no control characters' USING ERRCODE = 'CB422', DETAIL = 'id';
    ELSIF octet_length(reason) > 256 OR reason !~ c_text THEN
        RAISE EXCEPTION 'reason must have 1 to 256 bytes and no control characters' USING ERRCODE = 'CB422', DETAIL = 'reason';
    ELSIF tiebreak IS NOT NULL AND v_ties NOT IN ('tiebreak', 'second') THEN
        RAISE EXCEPTION 'board % does not use tiebreaks', board USING ERRCODE = 'CB422', DETAIL = 'tiebreak';
    ELSIF v_ties = 'tiebreak' AND tiebreak NOT BETWEEN -2048 AND 2047 THEN
        RAISE EXCEPTION 'tiebreak must be from -2048 to 2047, not %', tiebreak USING ERRCODE = 'CB422', DETAIL = 'tiebreak';
    ELSIF tiebreak = -9223372036854775808 THEN
        RAISE EXCEPTION 'tiebreak must be from -9223372036854775807 to 9223372036854775807' USING ERRCODE = 'CB422', DETAIL = 'tiebreak';
    ELSIF metadata IS NOT NULL THEN
        PERFORM centile_store.check_metadata(metadata);
    END IF;
    v_own := pg_current_xact_id();
    INSERT INTO centile_store.inbox (board_id, slug, user_id, points, event_id, tiebreak, reason, metadata)
    VALUES (v_board_id, v_slug, user_id, points, v_event_id, tiebreak, reason, metadata)
    RETURNING inbox.number INTO v_number;
    RETURN json_build_array(v_number, board, user_id, v_event_id, v_own);
END
$$;

COMMENT ON FUNCTION centile.submit(text, text, bigint, text, bigint, text, json) IS
'Submits a score in the transaction of the caller, and returns a ticket for centile.wait_for. Usually within 100 ms of the commit, an instance of the service writes the score, once. An id makes retries safe. Example: SELECT centile.submit(''arena'', ''ann'', 50, id => ''match-7'') IS NOT NULL AS is_submitted;';
GRANT EXECUTE ON FUNCTION centile.submit(text, text, bigint, text, bigint, text, json) TO centile_writer;
