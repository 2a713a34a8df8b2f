-- Run on the coordinator after every_server.sql. Makes foreign tables the partitions of its tables;
-- each foreign table reads a shard on a worker.
-- The servers must accept each other's connections as the owner of the database, as Citus requires.

CREATE EXTENSION IF NOT EXISTS postgres_fdw WITH SCHEMA public;

DO $$
DECLARE
    v_group record;
    v_shard record;
BEGIN
    FOR v_group IN
        SELECT g.number, g.lanes, 'centile_lanes_' || g.number AS server, n.nodename AS host, n.nodeport AS port, s.colocationid
        FROM centile_lanes.groups g
        JOIN pg_dist_placement y ON y.shardid = g.shard
        JOIN pg_dist_node n ON n.groupid = y.groupid AND n.noderole = 'primary'
        JOIN pg_dist_shard x ON x.shardid = g.shard
        JOIN pg_dist_partition s ON s.logicalrelid = x.logicalrelid
    LOOP
        EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw
                            OPTIONS (host %L, port %L, dbname %L, use_remote_estimate ''true'', async_capable ''true'', fetch_size ''10000'')',
            v_group.server, v_group.host, v_group.port, current_database());
        EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER %I OPTIONS (user %L)', v_group.server, current_user);
        FOR v_shard IN
            SELECT c.relname AS name, left(c.relname, -length('_' || v_group.number)) AS parent, s.shardid
            FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid JOIN pg_dist_shard s USING (logicalrelid)
            WHERE p.colocationid = v_group.colocationid
        LOOP
            EXECUTE format('CREATE FOREIGN TABLE centile_lanes.%I PARTITION OF centile_store.%I FOR VALUES IN (%s) SERVER %I OPTIONS (schema_name %L, table_name %L)',
                v_shard.name || '_rows', v_shard.parent, array_to_string(v_group.lanes, ', '), v_group.server, 'centile_lanes', v_shard.name || '_' || v_shard.shardid);
        END LOOP;
    END LOOP;
END
$$;

-- Workers have a view of this name, too: centile.epoch() is the same on every server.
CREATE VIEW centile_store.cluster_epoch AS SELECT * FROM centile_lanes.cluster_epoch;

-- Keeps all lanes on their servers until the transaction ends: a foreign table leads to one of them.
CREATE FUNCTION centile_lanes.hold_groups() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    -- 5 is ShareLock. A move takes ExclusiveLock.
    PERFORM lock_shard_metadata(5, array_agg(g.shard ORDER BY g.shard)) FROM centile_lanes.groups g;
    IF EXISTS (SELECT FROM centile_lanes.groups g JOIN pg_dist_placement p ON p.shardid = g.shard WHERE p.placementid IS DISTINCT FROM g.placement)
       -- A connection of this transaction that leads to a former worker.
       OR EXISTS (SELECT FROM public.postgres_fdw_get_connections() c WHERE NOT c.valid) THEN
        RAISE EXCEPTION 'a lane is being moved to another server' USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    RETURN NULL;
END
$$;
DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY '{board_lanes,batch_log,bucket_counts,fillings,leaderboard_bucket,players,quarantine,score_transactions,segment_members,transaction_ids,users}'::text[] LOOP
        EXECUTE format('CREATE TRIGGER hold_groups BEFORE INSERT OR UPDATE OR DELETE ON centile_store.%I
                            FOR EACH STATEMENT EXECUTE FUNCTION centile_lanes.hold_groups()', v_table);
    END LOOP;
END
$$;

-- All boards of a cluster have the same lanes, because users are placed by lane, too.
CREATE FUNCTION centile_lanes.set_lanes() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    NEW.lanes := (SELECT sum(cardinality(g.lanes)) FROM centile_lanes.groups g);
    RETURN NEW;
END
$$;
CREATE TRIGGER set_lanes BEFORE INSERT OR UPDATE ON centile_store.boards
    FOR EACH ROW WHEN (NEW.mode <> 'combined') EXECUTE FUNCTION centile_lanes.set_lanes();

-- Runs a statement on all workers, and fails unless all succeed.
CREATE FUNCTION centile_lanes.on_workers(p_statement text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_errors text;
BEGIN
    SELECT string_agg(format('%s:%s: %s', r.nodename, r.nodeport, r.result), '; ') INTO v_errors
    FROM run_command_on_workers(p_statement) r WHERE NOT r.success;
    IF v_errors IS NOT NULL THEN
        RAISE EXCEPTION 'cannot attach moved lanes: %', v_errors USING ERRCODE = 'CB001', HINT = 'Retry when all workers are up.';
    END IF;
END
$$;

-- Begins a new epoch on all servers, because a server with a new timeline may have lost commits: its
-- next batches can have the numbers of lost ones. A new server keeps the epoch.
CREATE FUNCTION centile_lanes.begin_epoch(p_node integer, p_timeline text) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '1s'
AS $$
DECLARE
    v_timelines text[];
    v_epoch     text;
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true);
    PERFORM pg_advisory_xact_lock(1128615508, -4);
    SELECT e.timelines, CASE WHEN e.timelines[p_node + 1] IS NULL AND e.epoch <> '' THEN e.epoch ELSE left(replace(gen_random_uuid()::text, '-', ''), 12) END
    INTO STRICT v_timelines, v_epoch FROM centile_lanes.cluster_epoch e;
    v_timelines[p_node + 1] := p_timeline;
    EXECUTE format('UPDATE centile_lanes.cluster_epoch SET epoch = %L, timelines = %L', v_epoch, v_timelines);
    RETURN 1;
END
$$;

-- Begins a new epoch if a server has a new timeline. A worker that takes scores does not wait for this
-- (centile_lanes.check_epoch).
CREATE FUNCTION centile_lanes.check_timelines() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_server record;
BEGIN
    FOR v_server IN
        SELECT s.node, s.timeline
        FROM (SELECT 0 AS node, centile_lanes.timeline() AS timeline
              UNION ALL
              SELECT n.groupid, r.result
              FROM run_command_on_workers('SELECT centile_lanes.timeline()') r
              JOIN pg_dist_node n ON n.nodename = r.nodename AND n.nodeport = r.nodeport
              WHERE r.success) s
        CROSS JOIN centile_lanes.cluster_epoch e
        WHERE s.timeline IS DISTINCT FROM e.timelines[s.node + 1]
    LOOP
        -- Another instance may have seen it, too.
        PERFORM pg_advisory_xact_lock(1128615508, -4);
        PERFORM centile_lanes.begin_epoch(v_server.node, v_server.timeline)
        FROM centile_lanes.cluster_epoch e WHERE e.timelines[v_server.node + 1] IS DISTINCT FROM v_server.timeline;
    END LOOP;
END
$$;

-- Takes a board's structure lock on all servers except p_left_out. Writers share it on the server that
-- has their lane: the update changes the copies of the board's row, and waits for the writers there. Until
-- the transaction ends, no copies on the workers p_left_out change.
--
-- These workers may still accept scores, if only the coordinator cannot reach them. So leave out workers
-- only to open periods or segments: a worker accepts no score for a period that it lacks.
CREATE FUNCTION centile_lanes.lock_on_servers(p_board_id integer, p_left_out integer[]) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Centile writes under READ COMMITTED only' USING ERRCODE = 'CB409', HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM set_config('centile.left_out', p_left_out::text, true);
    PERFORM pg_advisory_xact_lock(1128615508, p_board_id);
    UPDATE centile_store.boards AS b SET structure_revision = b.structure_revision + 1 WHERE b.id = p_board_id RETURNING * INTO v_board;
    RETURN v_board;
END
$$;

-- Attaches groups that Citus has moved to their new workers. The order matters. Before the new worker
-- accepts scores, the former worker releases the lanes, and new snapshots of the coordinator read the
-- new worker. Safe to run again.
CREATE PROCEDURE centile_lanes.follow_moves()
LANGUAGE plpgsql
AS $$
DECLARE
    v_group record;
BEGIN
    PERFORM centile_lanes.check_timelines();
    COMMIT;
    FOR v_group IN
        SELECT g.number, g.lanes, g.shard, p.placementid, p.groupid AS node, n.nodename AS host, n.nodeport AS port
        FROM centile_lanes.groups g
        JOIN pg_dist_placement p ON p.shardid = g.shard
        JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
        WHERE p.placementid IS DISTINCT FROM g.placement
    LOOP
        -- In both transactions, Citus cannot move the group again. 5 is ShareLock.
        PERFORM lock_shard_metadata(5, ARRAY[v_group.shard]);
        CONTINUE WHEN NOT EXISTS (SELECT FROM pg_dist_placement p WHERE p.placementid = v_group.placementid);
        WHILE centile_lanes.copy_periods(v_group.node) > 0 LOOP END LOOP;
        PERFORM centile_lanes.on_workers(format('SELECT centile_lanes.release(%L, %s)', v_group.lanes, v_group.node));
        PERFORM centile_lanes.on_workers(format('SELECT centile_lanes.attach(%s, %L, %s)', v_group.number, v_group.lanes, v_group.node));
        EXECUTE format('ALTER SERVER %I OPTIONS (SET host %L, SET port %L)', 'centile_lanes_' || v_group.number, v_group.host, v_group.port);
        COMMIT;
        PERFORM lock_shard_metadata(5, ARRAY[v_group.shard]);
        CONTINUE WHEN NOT EXISTS (SELECT FROM pg_dist_placement p WHERE p.placementid = v_group.placementid);
        PERFORM centile_lanes.on_workers(format('SELECT centile_lanes.accept(%s, %L, %s)', v_group.number, v_group.lanes, v_group.node));
        UPDATE centile_lanes.groups g SET node = v_group.node, placement = v_group.placementid WHERE g.number = v_group.number;
        COMMIT;
    END LOOP;
END
$$;

-- Runs a query with a result of type bigint[] on the worker that has a lane, in a transaction of its own.
-- Fails while the worker has not committed the ranking's layout: the coordinator may have lost the
-- connection for that commit.
CREATE FUNCTION centile_lanes.on_lane(p_lane smallint, p_ranking_id bigint, p_query text) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_answer record;
BEGIN
    SELECT r.* INTO STRICT v_answer
    FROM centile_lanes.groups g
    CROSS JOIN LATERAL run_command_on_placements(format('centile_lanes.%I', 'board_lanes_' || g.number)::regclass, format(
        'SELECT CASE WHEN (SELECT k.layout FROM centile_store.rankings k WHERE k.id = %2$s) IS NOT DISTINCT FROM %3$s THEN (%4$s) END
         FROM (SELECT centile_lanes.hold(%1$s) OFFSET 0) h',
        p_lane, coalesce(p_ranking_id, 0), coalesce((SELECT k.layout FROM centile_store.rankings k WHERE k.id = p_ranking_id)::text, 'NULL'), p_query)) r
    WHERE p_lane = ANY (g.lanes);
    IF NOT v_answer.success THEN
        RAISE EXCEPTION 'the worker that has lane % failed: %', p_lane, v_answer.result USING ERRCODE = 'CB001', HINT = 'Retry.';
    ELSIF v_answer.result = '' THEN
        RAISE EXCEPTION 'the worker that has lane % has an older layout', p_lane USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    RETURN v_answer.result::bigint[];
END
$$;
