-- One session per board takes at a time, so that events keep their order. The lock is held until the
-- caller's transaction ends. p_from: see centile_store.boards_in_inbox.
CREATE OR REPLACE FUNCTION centile_store.take_inbox(p_board_id integer, p_from bigint, p_limit integer) RETURNS SETOF centile_store.inbox
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF pg_try_advisory_xact_lock(1128615511, p_board_id) THEN
        RETURN QUERY SELECT * FROM centile_store.inbox i WHERE i.number >= p_from AND i.board_id = p_board_id AND i.slug IS NULL ORDER BY i.number LIMIT p_limit;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.take_inbox(integer, bigint, integer) IS
'Submitted events of a board in their order, unless another session has taken them. Example: SELECT user_id, points FROM centile_store.take_inbox(1, 1, 1000);';
