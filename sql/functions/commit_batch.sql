-- Writes what the service decided of a batch, after centile_store.begin_batch: ledger, ids,
-- quarantine, entries with their bucket rows and counts, lane. Writes nothing and returns a row of
-- NULLs if anything that the decisions rest on has changed since: begin again then.
--
-- p_revision, p_batch, p_server_started_at: the board's structure_revision, the lane's batch and the
-- server as begin_batch gave them. p_at: the time of the events without a time of their own (p_times). p_id_places, p_ids: the
-- callers' ids, with the places of their events in the ledger's arrays, from 1. p_standings: what
-- each of these events made of the player's standings, as many numbers for each. kept_*: events for
-- the quarantine. entry_*, group_*, row_*, count_*: the entries that change, with their bucket rows
-- and counts, as centile_store.write_entries takes them.
--
-- transaction_ids are the ledger's ids, in the order of the events; batch is the lane's last batch:
-- a reader of that batch sees all of these events.
CREATE OR REPLACE FUNCTION centile_store.commit_batch(
    p_board_id integer, p_lane smallint, p_revision bigint, p_batch bigint, p_server_started_at timestamptz, p_at timestamptz, p_keep_ids interval,
    p_users bigint[], p_points bigint[], p_tiebreaks smallint[], p_reasons text[], p_times timestamptz[],
    p_id_places integer[], p_ids text[], p_standings bigint[],
    kept_users bigint[], kept_points bigint[], kept_tiebreaks smallint[], kept_reasons text[], kept_ids text[], kept_rules text[], kept_details text[],
    entry_rankings bigint[], entry_users bigint[], entry_are_new boolean[], entry_keys bigint[], entry_ties bigint[], entry_zeros boolean[],
    group_buckets smallint[], group_deletes integer[], group_inserts integer[],
    row_rankings bigint[], row_keys bigint[], row_ties bigint[], row_users bigint[],
    count_rankings bigint[], count_buckets smallint[], count_changes integer[],
    OUT batch bigint, OUT transaction_ids bigint[], OUT quarantine_ids bigint[])
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_board centile_store.boards := centile_store.lock_structure(p_board_id, false);
    v_lane  centile_store.board_lanes;
    v_width integer := cardinality(p_standings) / greatest(cardinality(p_ids), 1);
BEGIN
    SELECT * INTO v_lane FROM centile_store.board_lanes l
    WHERE l.board_id = p_board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1 FOR UPDATE;
    IF NOT FOUND OR (v_board.structure_revision, v_lane.batch, pg_postmaster_start_time()) IS DISTINCT FROM (p_revision, p_batch, p_server_started_at) THEN
        RETURN;
    END IF;
    batch := v_lane.batch + 1;

    WITH written AS (
        INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, tiebreak, reason, occurred_at, lane, batch)
        SELECT p_board_id, e.user_id, 'score', e.points, e.tiebreak, e.reason, coalesce(e.at, p_at), p_lane, v_lane.batch + 1
        FROM unnest(p_users, p_points, p_tiebreaks, p_reasons, p_times) WITH ORDINALITY AS e (user_id, points, tiebreak, reason, at, place)
        ORDER BY e.place
        RETURNING id)
    SELECT array_agg(w.id ORDER BY w.id) INTO transaction_ids FROM written w;

    IF p_ids <> '{}' THEN
        INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, occurred_at, standings, expires_at)
        SELECT p_board_id, p_users[i.event], p_lane, i.id, transaction_ids[i.event], coalesce(p_times[i.event], p_at),
               p_standings[(i.place - 1) * v_width + 1 : i.place * v_width], now() + p_keep_ids
        FROM unnest(p_id_places, p_ids) WITH ORDINALITY AS i (event, id, place)
        ORDER BY p_users[i.event], i.id COLLATE "C";
    END IF;

    IF kept_users <> '{}' THEN
        WITH kept AS (
            INSERT INTO centile_store.quarantine (board_id, user_id, points, tiebreak, reason, external_id, rule, detail, submitted_at)
            SELECT p_board_id, k.user_id, k.points, k.tiebreak, k.reason, k.id, k.rule, k.detail, p_at
            FROM unnest(kept_users, kept_points, kept_tiebreaks, kept_reasons, kept_ids, kept_rules, kept_details) WITH ORDINALITY
                AS k (user_id, points, tiebreak, reason, id, rule, detail, place)
            ORDER BY k.place
            RETURNING id)
        SELECT array_agg(k.id ORDER BY k.id) INTO quarantine_ids FROM kept k;
        INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, quarantine_id, occurred_at, expires_at)
        SELECT p_board_id, k.user_id, p_lane, k.id, k.quarantine_id, p_at, now() + p_keep_ids
        FROM unnest(kept_users, kept_ids, quarantine_ids) AS k (user_id, id, quarantine_id)
        WHERE k.id IS NOT NULL;
    END IF;

    PERFORM centile_store.write_entries(p_lane, v_board.score_order, entry_rankings, entry_users, entry_are_new, entry_keys, entry_ties, entry_zeros,
        group_buckets, group_deletes, group_inserts, row_rankings, row_keys, row_ties, row_users, count_rankings, count_buckets, count_changes);
    PERFORM centile_store.advance_lane(v_lane,
        CASE WHEN p_times IS NULL THEN p_at ELSE (SELECT max(coalesce(t.at, p_at)) FROM unnest(p_times) AS t (at)) END, entry_users);
END
$$;

COMMENT ON FUNCTION centile_store.commit_batch(integer, smallint, bigint, bigint, timestamptz, timestamptz, interval, bigint[], bigint[], smallint[], text[], timestamptz[], integer[], text[], bigint[], bigint[], bigint[], smallint[], text[], text[], text[], text[], bigint[], bigint[], boolean[], bigint[], bigint[], boolean[], smallint[], integer[], integer[], bigint[], bigint[], bigint[], bigint[], bigint[], smallint[], integer[]) IS
'Writes a batch if the state is still that of begin_batch. Example: SELECT c.batch IS NULL AS is_stale FROM centile_store.commit_batch(1, 0::smallint, -1, 0, now(), ''2024-01-17 20:00Z'', NULL, ''{}'', ''{}'', ''{}'', ''{}'', NULL, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'') c;';
