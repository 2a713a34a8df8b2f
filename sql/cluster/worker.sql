-- Run on each worker after every_server.sql. Prepares the worker to attach its shards as partitions.
-- The servers must accept each other's connections as the owner of the database, as Citus requires.

CREATE EXTENSION IF NOT EXISTS postgres_fdw;

-- The lanes that this server writes, and the shard of board_lanes that has each.
CREATE TABLE centile_lanes.lanes (
    lane  smallint NOT NULL,
    shard bigint   NOT NULL,
    CONSTRAINT lanes_pkey PRIMARY KEY (lane)
);

-- Makes this server draw ids above p_id. Skips up to a million ids one by one, in half a second and
-- without waiting; concurrent sessions share the work. For more, ALTER SEQUENCE waits for sessions that
-- have drawn ids, and blocks others until this transaction ends. If a blocked session holds a lock that
-- this one needs, PostgreSQL cancels one of the two.
CREATE FUNCTION centile_lanes.draw_above(p_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET citus.enable_ddl_propagation = off
AS $$
BEGIN
    IF (SELECT (p_id - i.last_value) / 64 FROM centile_lanes.ids i) < 1000000 THEN
        LOOP
            EXIT WHEN nextval('centile_lanes.ids') > p_id;
        END LOOP;
        RETURN;
    END IF;
    ALTER SEQUENCE centile_lanes.ids INCREMENT BY 64;
    IF p_id >= (SELECT last_value FROM centile_lanes.ids) THEN
        EXECUTE format('ALTER SEQUENCE centile_lanes.ids RESTART WITH %s', (p_id / 64 + 1) * 64 + (SELECT groupid FROM pg_dist_local_group));
    END IF;
END
$$;

-- Runs a statement that returns a number on the coordinator, in a transaction of its own.
CREATE FUNCTION centile_lanes.on_coordinator(p_statement text) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_answer record;
BEGIN
    SELECT * INTO v_answer FROM run_command_on_coordinator(p_statement);
    IF NOT v_answer.success THEN
        RAISE EXCEPTION 'the coordinator of the cluster failed: %', v_answer.result USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    RETURN v_answer.result;
END
$$;

-- Fails until all servers have a new epoch after a failover of this server.
CREATE FUNCTION centile_lanes.check_epoch() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_node     integer := (SELECT groupid FROM pg_dist_local_group);
    v_timeline text;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'the server is in recovery' USING ERRCODE = 'read_only_sql_transaction';
    END IF;
    v_timeline := centile_lanes.timeline();
    IF (SELECT e.timelines[v_node + 1] = v_timeline FROM centile_store.cluster_epoch e) THEN
        RETURN;
    END IF;
    -- One session asks for the epoch; the others wait.
    PERFORM pg_advisory_xact_lock(1128615508, -4);
    IF (SELECT e.timelines[v_node + 1] IS DISTINCT FROM v_timeline FROM centile_store.cluster_epoch e) THEN
        PERFORM centile_lanes.on_coordinator(format('SELECT centile_lanes.begin_epoch(%s, %L)', v_node, v_timeline));
    END IF;
    -- The coordinator's commit may not have reached this server yet.
    IF (SELECT e.timelines[v_node + 1] IS DISTINCT FROM v_timeline FROM centile_store.cluster_epoch e) THEN
        RAISE EXCEPTION 'the server has failed over' USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
END
$$;

-- Keeps a lane on this server until the transaction ends. Fails if the lane is on another server.
CREATE FUNCTION centile_lanes.hold(p_lane integer) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_shard bigint := (SELECT l.shard FROM centile_lanes.lanes l WHERE l.lane = p_lane);
BEGIN
    -- 5 is ShareLock. A move takes ExclusiveLock.
    PERFORM lock_shard_metadata(5, ARRAY[v_shard]) WHERE v_shard IS NOT NULL;
    IF NOT EXISTS (SELECT FROM pg_dist_placement p JOIN pg_dist_local_group l USING (groupid) WHERE p.shardid = v_shard) THEN
        RAISE EXCEPTION 'lane % is being moved to another server', p_lane USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    PERFORM centile_lanes.check_epoch();
END
$$;

-- Changes of users take no lock of a board.
CREATE FUNCTION centile_lanes.hold_user() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM centile_lanes.hold(NEW.lane_hash % TG_ARGV[0]::integer);
    RETURN NEW;
END
$$;
DO $$
BEGIN
    EXECUTE format('CREATE TRIGGER hold_user BEFORE INSERT OR UPDATE ON centile_store.users FOR EACH ROW EXECUTE FUNCTION centile_lanes.hold_user(%L)',
        current_setting('centile.lanes'));
END
$$;

-- Ends the group's lanes on this server, unless it is p_node.
CREATE FUNCTION centile_lanes.release(p_lanes smallint[], p_node integer) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    DELETE FROM centile_lanes.lanes l
    WHERE l.lane = ANY (p_lanes) AND p_node <> (SELECT g.groupid FROM pg_dist_local_group g)
$$;

-- Attaches the shards of a group as partitions, if this server is p_node. Citus drops the shards on
-- the former worker. Nobody reads the shards yet, so the exclusive locks on them do not wait. Safe to
-- run again.
CREATE FUNCTION centile_lanes.attach(p_group integer, p_lanes smallint[], p_node integer) RETURNS void
LANGUAGE plpgsql VOLATILE
SET citus.enable_ddl_propagation = off
SET citus.enable_manual_changes_to_shards = on
SET lock_timeout = '1s'
AS $$
DECLARE
    v_shard record;
BEGIN
    IF p_node <> (SELECT g.groupid FROM pg_dist_local_group g) THEN
        RETURN;
    END IF;
    LOCK TABLE centile_lanes.lanes IN SHARE ROW EXCLUSIVE MODE;
    FOR v_shard IN
        SELECT left(c.relname, -length('_' || p_group)) AS parent, x.shard
        FROM pg_dist_partition p
        JOIN pg_class c ON c.oid = p.logicalrelid
        JOIN pg_dist_shard s USING (logicalrelid)
        CROSS JOIN LATERAL (SELECT to_regclass(format('centile_lanes.%I', c.relname || '_' || s.shardid)) AS shard) x
        WHERE p.colocationid = (SELECT p.colocationid FROM pg_dist_partition p WHERE p.logicalrelid = format('centile_lanes.%I', 'board_lanes_' || p_group)::regclass)
          AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = x.shard)
    LOOP
        EXECUTE format('ALTER TABLE centile_store.%I ATTACH PARTITION %s FOR VALUES IN (%s)', v_shard.parent, v_shard.shard, array_to_string(p_lanes, ', '));
    END LOOP;
END
$$;

-- Begins to accept scores for the attached lanes of a group, if this server is p_node. Its ids will be
-- above those in the group's ledger. Safe to run again.
CREATE FUNCTION centile_lanes.accept(p_group integer, p_lanes smallint[], p_node integer) RETURNS void
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '1s'
AS $$
BEGIN
    IF p_node <> (SELECT g.groupid FROM pg_dist_local_group g) THEN
        RETURN;
    END IF;
    LOCK TABLE centile_lanes.lanes IN SHARE ROW EXCLUSIVE MODE;
    PERFORM centile_lanes.draw_above((SELECT max(t.id) FROM centile_store.score_transactions t WHERE t.lane = ANY (p_lanes)));
    INSERT INTO centile_lanes.lanes (lane, shard)
    SELECT l, s.shardid FROM unnest(p_lanes) AS l CROSS JOIN pg_dist_shard s
    WHERE s.logicalrelid = format('centile_lanes.%I', 'board_lanes_' || p_group)::regclass
    ON CONFLICT DO NOTHING;
END
$$;

-- Copies that the coordinator keeps. Only it changes them.
CREATE FUNCTION centile_lanes.refuse_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'cannot change % on a worker of a cluster', TG_TABLE_NAME USING ERRCODE = 'CB409', HINT = 'Connect to the coordinator.';
END
$$;
DO $$
DECLARE
    v_copy record;
BEGIN
    FOR v_copy IN
        SELECT c.relname AS name, s.shardid FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid
        WHERE c.relnamespace = 'centile_lanes'::regnamespace AND c.relname = ANY ('{boards,periods,rankings,profile_revision,last_id,cluster_epoch}')
    LOOP
        EXECUTE format('DROP TABLE IF EXISTS centile_store.%I CASCADE', v_copy.name);
        EXECUTE format('CREATE VIEW centile_store.%I AS SELECT * FROM centile_lanes.%I', v_copy.name, v_copy.name || '_' || v_copy.shardid);
        EXECUTE format('CREATE TRIGGER refuse_change INSTEAD OF INSERT OR UPDATE OR DELETE ON centile_store.%I
                            FOR EACH ROW EXECUTE FUNCTION centile_lanes.refuse_change()', v_copy.name);
    END LOOP;
END
$$;

-- Instances read the coordinator's inbox only.
CREATE TRIGGER refuse_change BEFORE INSERT ON centile_store.inbox FOR EACH STATEMENT EXECUTE FUNCTION centile_lanes.refuse_change();

-- The structure lock. Each change of a board's copy takes it exclusively; writers share it
-- (centile_store.lock_structure).
CREATE FUNCTION centile_lanes.lock_board() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1128615508, NEW.id);
    RETURN NEW;
END
$$;
SET LOCAL citus.enable_manual_changes_to_shards = on;
DO $$
BEGIN
    EXECUTE (SELECT format('CREATE TRIGGER lock_board BEFORE UPDATE ON centile_lanes.%I FOR EACH ROW EXECUTE FUNCTION centile_lanes.lock_board()', 'boards_' || s.shardid)
             FROM pg_dist_shard s WHERE s.logicalrelid = 'centile_lanes.boards'::regclass);
END
$$;

-- Tables of the coordinator to which acts on this worker write.
DO $$
BEGIN
    EXECUTE (SELECT format('CREATE SERVER centile_coordinator FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)',
                 n.nodename, n.nodeport, current_database())
             FROM pg_dist_node n WHERE n.groupid = 0);
    EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER centile_coordinator OPTIONS (user %L)', current_user);
END
$$;
DROP TABLE centile_store.audit_log CASCADE;
IMPORT FOREIGN SCHEMA centile_store LIMIT TO (audit_log) FROM SERVER centile_coordinator INTO centile_store OPTIONS (import_collate 'false');
CREATE FOREIGN TABLE centile_lanes.coordinator_periods (id bigint, corrected_at timestamptz)
    SERVER centile_coordinator OPTIONS (schema_name 'centile_store', table_name 'periods');
