-- After a restore or a failover the same batch numbers may mean another state; the epoch tells them
-- apart. The service reads it once per connection and keeps it in a setting, because reading the
-- control file costs more than a rank. In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile.epoch() RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_known text := current_setting('centile.epoch', true);
BEGIN
    IF v_known <> '' THEN
        RETURN v_known;
    END IF;
    RETURN (SELECT left(encode(sha256(convert_to(concat_ws(':',
                s.system_identifier,
                CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
                d.oid), 'UTF8')), 'hex'), 12)
            FROM pg_control_system() s, pg_database d
            WHERE d.datname = current_database());
END
$$;

COMMENT ON FUNCTION centile.epoch() IS
'Identifies this incarnation of the database: a digest of system identifier, timeline and database oid. Example: SELECT centile.epoch();';
GRANT EXECUTE ON FUNCTION centile.epoch() TO centile_reader;
