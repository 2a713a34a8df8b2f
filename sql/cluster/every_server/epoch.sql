-- Returns the epoch that all servers store. After a failover of this server, it returns a different one
-- until the new epoch has begun (centile_lanes.begin_epoch).
CREATE OR REPLACE FUNCTION centile.epoch() RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN pg_is_in_recovery() OR e.timelines[(SELECT groupid FROM pg_dist_local_group) + 1] = centile_lanes.timeline() THEN e.epoch
                    ELSE left(encode(sha256(convert_to(e.epoch || centile_lanes.timeline(), 'UTF8')), 'hex'), 12) END
        FROM centile_store.cluster_epoch e);
END
$$;

COMMENT ON FUNCTION centile.epoch() IS
'Identifies this incarnation of the cluster. A failover or a restore of any of its servers changes it.';
GRANT EXECUTE ON FUNCTION centile.epoch() TO centile_reader;
