-- Run on the coordinator, in an empty database with the tables of the migrations. Creates the
-- distributed tables of a cluster: those whose rows belong to a lane, once per group of lanes, and
-- reference tables with copies of those that every server reads.
--
-- centile.lanes: the number of lanes of each board. centile.groups: the number of groups. Lane n
-- belongs to group n modulo that number.

CREATE SCHEMA centile_lanes;
COMMENT ON SCHEMA centile_lanes IS 'Tables of a cluster: groups of lanes, and what every server needs to know.';

-- Ids of users, and of transactions and events. Those of one server have the same remainder modulo
-- 64, so no two servers draw the same id. Rank indexes hold ids of users below 2^32.
CREATE FUNCTION centile_lanes.next_id(p_of text) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN CASE p_of WHEN 'user' THEN nextval('centile_lanes.user_ids') ELSE nextval('centile_lanes.ids') END;
END
$$;

-- The highest id that any server had drawn when the coordinator last asked (centile_store.ledger_end),
-- and the highest id of a user that was copied from a single server.
CREATE TABLE centile_lanes.last_id (
    one_row boolean NOT NULL DEFAULT true,
    id      bigint  NOT NULL,
    user_id bigint  NOT NULL,
    CONSTRAINT last_id_pkey PRIMARY KEY (one_row)
);
SELECT create_reference_table('centile_lanes.last_id');
INSERT INTO centile_lanes.last_id (id, user_id) VALUES (0, 0);

-- The epoch of the cluster, and the timeline in which each server has it. The index is the server's
-- groupid in Citus plus 1; the coordinator has 0. Not in the table above, whose row is locked longer.
CREATE TABLE centile_lanes.cluster_epoch (
    one_row   boolean NOT NULL DEFAULT true,
    epoch     text    NOT NULL,
    timelines text[]  NOT NULL,
    CONSTRAINT cluster_epoch_pkey PRIMARY KEY (one_row)
);
SELECT create_reference_table('centile_lanes.cluster_epoch');
INSERT INTO centile_lanes.cluster_epoch (epoch, timelines) VALUES ('', '{}');

-- Periods and segments that were opened while a worker was down. The worker lacks their rows until
-- centile_lanes.copy_periods has copied them.
CREATE TABLE centile_lanes.uncopied_periods (
    period_id bigint  NOT NULL,
    node      integer NOT NULL,
    CONSTRAINT uncopied_periods_pkey PRIMARY KEY (period_id, node)
);

-- Copies periods that a worker lacks to it, at most 500 in each call, and returns their number. Fails if
-- the worker does not answer. Safe to run again.
CREATE FUNCTION centile_lanes.copy_periods(p_node integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '1s'
SET citus.node_connection_timeout = '3s'
AS $$
DECLARE
    v_periods bigint[] := ARRAY(SELECT m.period_id FROM centile_lanes.uncopied_periods m WHERE m.node = p_node ORDER BY m.period_id LIMIT 500);
    v_inserts text;
    v_error   text;
BEGIN
    IF v_periods = '{}' THEN
        RETURN 0;
    END IF;
    -- No other session changes these rows before the worker has them.
    PERFORM FROM centile_store.periods p WHERE p.id = ANY (v_periods) ORDER BY p.id FOR UPDATE;
    PERFORM FROM centile_store.rankings r WHERE r.period_id = ANY (v_periods) ORDER BY r.id FOR UPDATE;
    SELECT format('WITH %s SELECT set_config(''synchronous_commit'', ''on'', true)', string_agg(format(
               '%1$I AS (INSERT INTO centile_lanes.%2$I SELECT * FROM jsonb_populate_recordset(NULL::centile_lanes.%2$I, %3$L) ON CONFLICT DO NOTHING)',
               t.name, t.name || '_' || s.shardid, t.rows), ', '))
    INTO v_inserts
    FROM (SELECT 'periods' AS name, jsonb_agg(to_jsonb(p) - 'frozen_top') AS rows FROM centile_store.periods p WHERE p.id = ANY (v_periods)
          UNION ALL
          SELECT 'rankings', jsonb_agg(to_jsonb(r)) FROM centile_store.rankings r WHERE r.period_id = ANY (v_periods)) t
    JOIN pg_dist_shard s ON s.logicalrelid = format('centile_lanes.%I', t.name)::regclass;
    SELECT format('%s:%s: %s', n.nodename, n.nodeport, r.result) INTO v_error
    FROM pg_dist_node n CROSS JOIN LATERAL master_run_on_worker(ARRAY[n.nodename], ARRAY[n.nodeport], ARRAY[v_inserts], false) r
    WHERE n.groupid = p_node AND n.noderole = 'primary' AND NOT r.success;
    IF v_error IS NOT NULL THEN
        RAISE EXCEPTION 'cannot copy periods to %', v_error USING ERRCODE = 'CB001', HINT = 'Retry when the worker is up.';
    END IF;
    DELETE FROM centile_lanes.uncopied_periods m WHERE m.node = p_node AND m.period_id = ANY (v_periods);
    RETURN cardinality(v_periods);
END
$$;

-- Copies the reference tables to workers that were added. Citus may read the rows from any worker, so this
-- first copies the periods that workers lack. The lock keeps sessions from opening periods without a worker
-- meanwhile.
CREATE FUNCTION centile_lanes.copy_reference_tables() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_node integer;
BEGIN
    LOCK TABLE centile_lanes.uncopied_periods IN SHARE MODE;
    FOR v_node IN SELECT DISTINCT m.node FROM centile_lanes.uncopied_periods m JOIN pg_dist_placement p ON p.groupid = m.node LOOP
        WHILE centile_lanes.copy_periods(v_node) > 0 LOOP END LOOP;
    END LOOP;
    PERFORM replicate_reference_tables('block_writes');
END
$$;

-- Repeats each change of a table in its copies on all servers, in the same transaction. Citus accepts
-- only constants in such a statement. Omits frozen tops (bytea), which workers do not need.
--
-- Marks the workers in the setting centile.left_out (centile_lanes.lock_on_servers) as inactive during the
-- statement, so that Citus skips them. No other session sees the mark.
CREATE FUNCTION centile_lanes.copy_row() RETURNS trigger
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_columns text[] := ARRAY(
        SELECT a.attname FROM pg_attribute a
        WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid <> 'bytea'::regtype ORDER BY a.attnum);
    v_values   text[];
    v_left_out integer[] := nullif(current_setting('centile.left_out', true), '');
    v_inactive integer[] := ARRAY(SELECT n.nodeid FROM pg_dist_node n WHERE n.groupid = ANY (v_left_out) AND n.isactive AND n.noderole = 'primary');
BEGIN
    IF TG_OP = 'DELETE' THEN
        EXECUTE format('DELETE FROM centile_lanes.%I WHERE %I = %L', TG_TABLE_NAME, TG_ARGV[0], to_jsonb(OLD) ->> TG_ARGV[0]);
        RETURN NULL;
    END IF;
    IF v_inactive <> '{}' THEN
        UPDATE pg_dist_node SET isactive = false WHERE nodeid = ANY (v_inactive);
    END IF;
    EXECUTE (SELECT format('SELECT ARRAY[%s]', string_agg(format('($1).%I::text', c), ', ')) FROM unnest(v_columns) AS c) INTO v_values USING NEW;
    IF TG_OP = 'INSERT' THEN
        EXECUTE (SELECT format('INSERT INTO centile_lanes.%I (%s) VALUES (%s)', TG_TABLE_NAME, string_agg(quote_ident(x.c), ', '), string_agg(quote_nullable(x.v), ', '))
                 FROM unnest(v_columns, v_values) AS x (c, v));
    ELSE
        EXECUTE (SELECT format('UPDATE centile_lanes.%I SET %s WHERE %I = %L', TG_TABLE_NAME,
                     string_agg(format('%I = %s', x.c, quote_nullable(x.v)), ', '), TG_ARGV[0], to_jsonb(OLD) ->> TG_ARGV[0])
                 FROM unnest(v_columns, v_values) AS x (c, v));
    END IF;
    IF v_inactive <> '{}' THEN
        UPDATE pg_dist_node SET isactive = true WHERE nodeid = ANY (v_inactive);
    END IF;
    IF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'periods' THEN
        INSERT INTO centile_lanes.uncopied_periods (period_id, node) SELECT NEW.id, n FROM unnest(v_left_out) AS n;
    END IF;
    RETURN NULL;
END
$$;

DO $$
DECLARE
    v_copy record;
BEGIN
    FOR v_copy IN SELECT * FROM (VALUES ('boards', 'id'), ('periods', 'id'), ('rankings', 'id'), ('profile_revision', 'one_row')) AS t (name, key) LOOP
        EXECUTE format('CREATE TABLE centile_lanes.%1$I (LIKE centile_store.%1$I INCLUDING DEFAULTS INCLUDING INDEXES INCLUDING STORAGE)', v_copy.name);
        PERFORM create_reference_table(format('centile_lanes.%I', v_copy.name));
        EXECUTE format('CREATE TRIGGER copy_row AFTER INSERT OR UPDATE OR DELETE ON centile_store.%I
                            FOR EACH ROW EXECUTE FUNCTION centile_lanes.copy_row(%L)', v_copy.name, v_copy.key);
    END LOOP;
    INSERT INTO centile_lanes.profile_revision (revision) VALUES (0);
END
$$;

-- Where each group is: the shard of its board_lanes, and the worker that has the group. NULL until
-- centile_lanes.follow_moves has attached its shards.
CREATE TABLE centile_lanes.groups (
    number smallint   NOT NULL,
    lanes  smallint[] NOT NULL,
    shard  bigint     NOT NULL,
    node   integer,
    -- The placement of the shard there. Each move makes another.
    placement bigint,
    CONSTRAINT groups_pkey PRIMARY KEY (number)
);

DO $$
DECLARE
    v_groups  integer := current_setting('centile.groups');
    v_count   integer := current_setting('centile.lanes');
    v_tables  text[] := '{board_lanes,batch_log,bucket_counts,fillings,leaderboard_bucket,players,quarantine,score_transactions,segment_members,transaction_ids,users}';
    v_table   text;
    v_name    text;
    v_lanes   smallint[];
    v_options text;
BEGIN
    FOR v_group IN 0..v_groups - 1 LOOP
        v_lanes := ARRAY(SELECT generate_series(v_group, v_count - 1, v_groups)::smallint);
        FOREACH v_table IN ARRAY v_tables LOOP
            v_name := format('centile_lanes.%I', v_table || '_' || v_group);
            EXECUTE format('CREATE TABLE %s (LIKE centile_store.%I INCLUDING ALL EXCLUDING IDENTITY, CONSTRAINT %I CHECK (%s = ANY (%L::smallint[])))',
                v_name, v_table, v_table || '_of_lanes',
                CASE v_table WHEN 'users' THEN format('(lane_hash %% %s)', v_count) ELSE 'lane IS NOT NULL AND lane' END, v_lanes);
            -- One table instead of a hundred: Citus moves it five times as fast.
            IF v_table = 'leaderboard_bucket' THEN
                EXECUTE format('ALTER TABLE %s ADD PRIMARY KEY (ranking_id, rank_key, tie_key, user_key)', v_name);
            END IF;
            v_options := (SELECT array_to_string(c.reloptions, ', ') FROM pg_class c
                          WHERE c.oid = format('centile_store.%I', CASE v_table WHEN 'leaderboard_bucket' THEN 'leaderboard_bucket_00' ELSE v_table END)::regclass);
            IF v_options <> '' THEN
                EXECUTE format('ALTER TABLE %s SET (%s)', v_name, v_options);
            END IF;
            IF v_table IN ('users', 'score_transactions', 'quarantine') THEN
                EXECUTE format('ALTER TABLE %s ALTER COLUMN id SET DEFAULT centile_lanes.next_id(%L)', v_name, CASE v_table WHEN 'users' THEN 'user' ELSE 'transaction' END);
            END IF;
            PERFORM create_distributed_table(v_name, NULL,
                colocate_with => CASE v_table WHEN v_tables[1] THEN 'none' ELSE format('centile_lanes.%I', v_tables[1] || '_' || v_group) END);
        END LOOP;
        INSERT INTO centile_lanes.groups (number, lanes, shard)
        SELECT v_group, v_lanes, s.shardid FROM pg_dist_shard s
        WHERE s.logicalrelid = format('centile_lanes.%I', v_tables[1] || '_' || v_group)::regclass;
    END LOOP;
END
$$;

-- An INSERT through a worker's foreign table sends NULL for columns that it omits.
ALTER TABLE centile_store.audit_log ALTER COLUMN id SET GENERATED BY DEFAULT;
CREATE FUNCTION centile_lanes.complete_act() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    NEW.id := coalesce(NEW.id, nextval(pg_get_serial_sequence('centile_store.audit_log', 'id')));
    NEW.happened_at := coalesce(NEW.happened_at, clock_timestamp());
    RETURN NEW;
END
$$;
CREATE TRIGGER complete_act BEFORE INSERT ON centile_store.audit_log FOR EACH ROW EXECUTE FUNCTION centile_lanes.complete_act();
