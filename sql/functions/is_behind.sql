CREATE OR REPLACE FUNCTION centile_store.is_behind(p_board_id integer, p_batches bigint[]) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM unnest(p_batches, centile_store.applied_batches(p_board_id, cardinality(p_batches))) AS a (batch, applied)
        WHERE a.batch > a.applied);
END
$$;

COMMENT ON FUNCTION centile_store.is_behind(integer, bigint[]) IS
'Whether some of these batches of a board''s lanes are not applied yet. Example: SELECT centile_store.is_behind(1, ''{7,9}'');';
