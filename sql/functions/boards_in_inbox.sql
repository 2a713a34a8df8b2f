-- p_busy: boards that this instance is already writing, or that wait. If the p_limit oldest events
-- are all of such boards, looks for events of each other board.
--
-- Reads from number p_from, so that removed rows, which an old snapshot keeps, do not slow it down.
-- from_number is the next p_from: p_next + 1, once all transactions before p_next_xid have ended and
-- left no event up to p_next. With p_asks, returns the next such pair: centile.submit has a transaction
-- id before it takes a number, so later transactions take later numbers. Any transaction with an id
-- that stays open keeps p_from.
CREATE OR REPLACE FUNCTION centile_store.boards_in_inbox(
    p_busy integer[], p_limit integer, p_from bigint, p_next bigint, p_next_xid bigint, p_asks boolean,
    OUT from_number bigint, OUT next_number bigint, OUT next_xid bigint, OUT boards integer[], OUT slugs text[])
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_have_ended boolean := pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= p_next_xid;
    v_oldest     integer[];
BEGIN
    -- In a later snapshot, which sees what those transactions have committed.
    from_number := CASE WHEN v_have_ended AND NOT EXISTS (SELECT FROM centile_store.inbox i WHERE i.number BETWEEN p_from AND p_next) THEN p_next + 1 ELSE p_from END;
    IF p_asks THEN
        next_number := (SELECT s.last_value FROM centile_store.inbox_number_seq s WHERE s.is_called AND s.last_value >= from_number);
        next_xid := CASE WHEN next_number IS NOT NULL THEN pg_current_xact_id()::text::bigint END;
    END IF;
    PERFORM centile_store.create_submitted(from_number);
    v_oldest := ARRAY(SELECT i.board_id FROM centile_store.inbox i WHERE i.number >= from_number ORDER BY i.number LIMIT p_limit);
    -- An empty inbox needs no lock of the boards.
    IF v_oldest <> '{}' THEN
        SELECT array_agg(b.id), array_agg(b.slug) INTO boards, slugs FROM centile_store.board_names b WHERE b.id = ANY (v_oldest) AND b.id <> ALL (p_busy);
    END IF;
    IF boards IS NULL AND cardinality(v_oldest) = p_limit THEN
        SELECT array_agg(b.id), array_agg(b.slug) INTO boards, slugs FROM centile_store.board_names b
        WHERE b.id <> ALL (p_busy) AND EXISTS (SELECT FROM centile_store.inbox i WHERE i.board_id = b.id AND i.number >= from_number);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.boards_in_inbox(integer[], integer, bigint, bigint, bigint, boolean) IS
'Boards of the oldest submitted events. Example: SELECT slugs FROM centile_store.boards_in_inbox(''{}'', 1000, 1, NULL, NULL, false);';
