-- A segment may be closed after its whole period. Until then, it needs the standings of the whole
-- period.
CREATE OR REPLACE FUNCTION centile_store.open_segment_periods(p_period_ids bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
    SELECT ARRAY(
        SELECT w.id FROM centile_store.periods w
        WHERE w.id = ANY (p_period_ids) AND EXISTS (
            SELECT FROM centile_store.periods s
            WHERE s.board_id = w.board_id AND s.kind = w.kind AND s.label = w.label AND s.segment <> '' AND s.state <> 'closed'))
$$;

COMMENT ON FUNCTION centile_store.open_segment_periods(bigint[]) IS
'The whole periods among these with a segment that is not closed. Example: SELECT centile_store.open_segment_periods(''{1}'');';
