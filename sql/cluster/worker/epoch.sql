-- The epoch of the cluster, with which the coordinator identifies all servers.
CREATE OR REPLACE FUNCTION centile.epoch() RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT c.epoch FROM centile_store.cluster c);
END
$$;

COMMENT ON FUNCTION centile.epoch() IS
'Identifies this incarnation of the cluster: a digest of the coordinator and of all servers'' timelines.';
GRANT EXECUTE ON FUNCTION centile.epoch() TO centile_reader;
