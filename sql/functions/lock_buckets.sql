-- Serializes changes of a board's bucket rows, counts and layouts, and of which rankings are current:
-- apply_board, layout steps, swaps and closings take it. Writers do not; on a cluster, they change
-- bucket rows without it. Take it before the structure lock.
CREATE OR REPLACE FUNCTION centile_store.lock_buckets(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    -- Under the lock, a session must see what others have committed.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Centile writes under READ COMMITTED only' USING ERRCODE = 'CB409', HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    -- A crash must not undo batches or a layout that an answer has shown.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(1128615512, p_board_id);
END
$$;

COMMENT ON FUNCTION centile_store.lock_buckets(integer) IS
'Locks the bucket rows, counts and layouts of a board''s current rankings for this transaction. Example: SELECT centile_store.lock_buckets(1);';
