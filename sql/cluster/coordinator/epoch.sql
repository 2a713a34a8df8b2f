-- The epoch that all servers know. After a failover of the coordinator, another one until
-- centile_lanes.register_servers has stored the new timeline.
CREATE OR REPLACE FUNCTION centile.epoch() RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN pg_is_in_recovery() OR c.timelines[1] = centile_lanes.timeline() THEN c.epoch
                    ELSE left(encode(sha256(convert_to(c.epoch || centile_lanes.timeline(), 'UTF8')), 'hex'), 12) END
        FROM centile_lanes.cluster c);
END
$$;

COMMENT ON FUNCTION centile.epoch() IS
'Identifies this incarnation of the cluster: a digest of the coordinator and of all servers'' timelines.';
GRANT EXECUTE ON FUNCTION centile.epoch() TO centile_reader;
