-- After a restore or a failover, the same batch numbers may stand for another state; the epoch
-- tells the states apart. A replica cannot read its timeline in SQL. Its epoch contains the time of
-- its start instead, because it changes its history only by a restart (pg_rewind, a new copy) or a
-- promotion.
--
-- The service reads the epoch once per connection and keeps it in a setting, because reading the
-- control file costs more than a rank. A connection to a replica uses another setting, which is
-- ignored after a promotion. The function is in plpgsql because plpgsql keeps its plans.
CREATE OR REPLACE FUNCTION centile.epoch() RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_is_replica boolean := pg_is_in_recovery();
    v_known text := current_setting(CASE WHEN v_is_replica THEN 'centile.replica_epoch' ELSE 'centile.epoch' END, true);
BEGIN
    IF v_known <> '' THEN
        RETURN v_known;
    END IF;
    RETURN (SELECT left(encode(sha256(convert_to(concat_ws(':',
                s.system_identifier,
                CASE WHEN v_is_replica THEN extract(epoch FROM pg_postmaster_start_time())::text ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
                d.oid), 'UTF8')), 'hex'), 12)
            FROM pg_control_system() s, pg_database d
            WHERE d.datname = current_database());
END
$$;

COMMENT ON FUNCTION centile.epoch() IS
'Identifies this incarnation of the database: a digest of system identifier, timeline and database oid; on a replica, the time of its start in place of the timeline. Example: SELECT centile.epoch();';
GRANT EXECUTE ON FUNCTION centile.epoch() TO centile_reader;
