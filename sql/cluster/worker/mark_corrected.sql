-- On the coordinator, which has the periods. If this transaction fails afterwards, the next refresh
-- finds nothing new.
CREATE OR REPLACE FUNCTION centile_store.mark_corrected(p_period_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_lanes.coordinator_periods p SET corrected_at = clock_timestamp() WHERE p.id = ANY (p_period_ids);
END
$$;

COMMENT ON FUNCTION centile_store.mark_corrected(bigint[]) IS
'Marks closed periods whose archives lack a correction until their next refresh.';
