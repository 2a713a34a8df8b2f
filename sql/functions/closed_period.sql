-- In plpgsql, so that statements about other periods do not lock the partitions of closed_boards.
CREATE OR REPLACE FUNCTION centile_store.closed_period(p_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT
AS $$
BEGIN
    IF p_id < 1::bigint << 40 THEN
        RETURN p_id;
    END IF;
    RETURN (SELECT c.period_id FROM centile_store.closed_boards c WHERE c.id = p_id);
END
$$;

COMMENT ON FUNCTION centile_store.closed_period(bigint) IS
'The period of an archive: of a board''s results in a period of a template, or the period itself. Example: SELECT centile_store.closed_period(2);';
