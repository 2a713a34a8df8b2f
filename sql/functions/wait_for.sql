-- The order of the checks matters: an event leaves the inbox after it has left its result. A waiting
-- statement holds a snapshot, so it waits for a minute at most.
CREATE OR REPLACE FUNCTION centile.wait_for(
    p_ticket text, p_timeout interval DEFAULT '10 seconds',
    OUT state text, OUT transaction_id bigint, OUT occurred_at timestamptz, OUT quarantine_id bigint, OUT code text, OUT reason text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_until  timestamptz := clock_timestamp() + least(p_timeout, '1 minute');
    v_number bigint;
    v_board  text;
    v_user   text;
    v_id     text;
    v_xid    xid8;
    v_status text;
BEGIN
    BEGIN
        SELECT t ->> 0, t ->> 1, t ->> 2, t ->> 3, t ->> 4 INTO STRICT v_number, v_board, v_user, v_id, v_xid
        FROM (SELECT p_ticket::json AS t) t WHERE json_array_length(t) = 5;
        v_status := pg_xact_status(v_xid);
    EXCEPTION
        WHEN data_exception OR no_data_found THEN
            RAISE EXCEPTION 'ticket must be a text that centile.submit returned' USING ERRCODE = 'CB422', DETAIL = 'ticket';
    END;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'wait_for needs a transaction with the isolation level read committed' USING ERRCODE = 'CB409', DETAIL = 'conflict';
    ELSIF v_xid = pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the score is written after its transaction has committed' USING ERRCODE = 'CB409', DETAIL = 'conflict', HINT = 'Commit, then wait.';
    END IF;
    LOOP
        -- A statement of its own: the next one sees what a transaction that has ended has left.
        v_status := pg_xact_status(v_xid);
        EXIT WHEN v_status IS DISTINCT FROM 'in progress' AND NOT EXISTS (SELECT FROM centile_store.inbox i WHERE i.number = v_number);
        IF clock_timestamp() >= v_until THEN
            state := 'waiting';
            RETURN;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    SELECT f.code, f.reason, f.quarantine_id, CASE WHEN f.quarantine_id IS NULL THEN 'refused' ELSE 'quarantined' END INTO code, reason, quarantine_id, state
    FROM centile_store.inbox_failures f WHERE f.number = v_number AND f.user_id = v_user;
    IF NOT FOUND THEN
        SELECT k.transaction_id, k.occurred_at, 'accepted' INTO transaction_id, occurred_at, state
        FROM centile_store.transaction_ids k JOIN centile_store.board_names b ON b.id = k.board_id JOIN centile_store.users u ON u.id = k.user_id
        WHERE b.slug = v_board AND u.external_id = v_user AND k.external_id = v_id AND k.transaction_id IS NOT NULL;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no score was submitted with ticket %: its transaction was rolled back, it was written more than seven days ago, or the player was erased', quote_literal(p_ticket)
                USING ERRCODE = 'CB404', DETAIL = 'transaction';
        END IF;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.wait_for(text, interval) IS
'Waits until a submitted score is written, and returns its result: accepted, quarantined or refused; or waiting after the timeout. Call it after the commit. Example: SELECT state, transaction_id FROM centile.wait_for(''[1, "arena", "dan", "match-8", "3"]'', ''0 seconds'');';
GRANT EXECUTE ON FUNCTION centile.wait_for(text, interval) TO centile_writer;
