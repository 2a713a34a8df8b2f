-- Run on every server of a cluster after distribute.sql. Replaces the tables whose rows belong to a
-- lane with partitioned tables of the same names, so that all functions run unchanged on every server.
-- The setting centile.lanes is the number of lanes of each board.

-- Each server draws ids with its own remainder modulo 64, the number that Citus gave it. The
-- coordinator has 0.
CREATE SEQUENCE centile_lanes.ids INCREMENT BY 64;
CREATE SEQUENCE centile_lanes.user_ids INCREMENT BY 64;
DO $$
DECLARE
    v_server  integer := (SELECT groupid FROM pg_dist_local_group);
    v_user_id bigint := (SELECT user_id FROM centile_lanes.last_id);
    v_id      bigint := (SELECT id FROM centile_lanes.last_id);
BEGIN
    IF v_server > 63 THEN
        RAISE EXCEPTION 'a cluster can have 63 workers, including those that were removed' USING ERRCODE = 'CB409';
    END IF;
    PERFORM setval('centile_lanes.user_ids', (v_user_id / 64 + 1) * 64 + v_server, false);
    PERFORM setval('centile_lanes.ids', (v_id / 64 + 1) * 64 + v_server, false);
END
$$;

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY '{board_lanes,batch_log,bucket_counts,fillings,leaderboard_bucket,players,quarantine,score_transactions,segment_members,transaction_ids,users}'::text[] LOOP
        EXECUTE format('DROP TABLE centile_store.%I CASCADE', v_table);
        EXECUTE format('CREATE TABLE centile_store.%1$I (LIKE centile_lanes.%2$I INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY LIST (%3$s)',
            v_table, v_table || '_0', CASE v_table WHEN 'users' THEN format('(lane_hash %% %s)', current_setting('centile.lanes')) ELSE 'lane' END);
    END LOOP;
    -- Every batch is applied in its own transaction (every_server/advance_lane.sql).
    DROP TABLE centile_store.applied CASCADE;
    CREATE VIEW centile_store.applied AS SELECT l.board_id, l.lane, l.batch FROM centile_store.board_lanes l;
    CREATE RULE keep_insert AS ON INSERT TO centile_store.applied DO INSTEAD NOTHING;
    CREATE RULE keep_update AS ON UPDATE TO centile_store.applied DO INSTEAD NOTHING;
    CREATE RULE keep_delete AS ON DELETE TO centile_store.applied DO INSTEAD NOTHING;
    -- The rows of each bucket under the name that functions use.
    FOR v_bucket IN 0..99 LOOP
        EXECUTE format('CREATE VIEW centile_store.leaderboard_bucket_%s AS SELECT * FROM centile_store.leaderboard_bucket WHERE bucket = %s',
            to_char(v_bucket, 'FM00'), v_bucket);
        EXECUTE format('GRANT SELECT ON centile_store.leaderboard_bucket_%s TO centile_reader', to_char(v_bucket, 'FM00'));
    END LOOP;
END
$$;

-- The timeline of this server. A failover or a restore begins a new one.
CREATE FUNCTION centile_lanes.timeline() RETURNS text
LANGUAGE sql VOLATILE
AS $$
    SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)
$$;
