-- On a cluster, no function ranks players without bucket rows.
CREATE OR REPLACE FUNCTION centile_store.check_buckets(p_buckets text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_buckets = 'all_time' AND to_regclass('centile_lanes.groups') IS NOT NULL THEN
        RAISE EXCEPTION 'on a cluster, every ranking has bucket rows' USING ERRCODE = 'CB422', DETAIL = 'buckets', HINT = 'Set buckets to all.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_buckets(text) IS
'Raises an error if the server does not support a value of the setting "buckets". Example: SELECT centile_store.check_buckets(''all'') IS NOT NULL AS is_valid;';
