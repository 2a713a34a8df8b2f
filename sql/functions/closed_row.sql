-- In plpgsql, so that statements about other periods do not lock the partitions of closed_boards, whose
-- ids are all above those of periods.
CREATE OR REPLACE FUNCTION centile_store.closed_row(p_id bigint) RETURNS SETOF centile_store.closed_boards
LANGUAGE plpgsql STABLE ROWS 1
AS $$
BEGIN
    IF p_id >= 1::bigint << 40 THEN
        RETURN QUERY SELECT * FROM centile_store.closed_boards c WHERE c.id = p_id;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.closed_row(bigint) IS
'The results of a template''s board in a closed period by their id; no row for the id of a period. Example: SELECT c.players FROM centile_store.closed_row(2) c;';
