-- Writes what the service decided after centile_store.begin_batch: ledger, ids, quarantine,
-- standings, lane and log. If the state behind these decisions has changed, writes nothing and
-- returns a row of NULLs; the caller retries.
--
-- p_revision, p_batch, p_server_started_at: structure_revision, batch and server as begin_batch
-- returned them. p_at: the time of events without one. Standings of an event: the same number of
-- values for each period, the player's standing after the event. p_players: all standings of the
-- players whose standings change. p_entries: the entries that change, for the log; p_entry_boards:
-- their boards, if p_board_id is a template. p_metadata: in the order of the events; NULL if none has
-- any. p_member_*: the segments of players new to the board, and an empty segment for each. The ids in
-- the result are in the order of the events.
CREATE OR REPLACE FUNCTION centile_store.commit_batch(
    p_board_id integer, p_lane smallint, p_revision bigint, p_batch bigint, p_server_started_at timestamptz, p_at timestamptz, p_keep_ids interval,
    p_events centile_store.pending_event[],
    p_players centile_store.player_standings[], p_entries centile_store.logged_entries, p_metadata text[], p_entry_boards integer[], p_member_users bigint[], p_member_segments text[],
    OUT batch bigint, OUT transaction_ids bigint[], OUT quarantine_ids bigint[])
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_board   centile_store.boards := centile_store.lock_structure(p_board_id, false, p_lane);
    v_lane    centile_store.board_lanes;
    v_last_at timestamptz;
    v_has_ids boolean;
    v_breaks  boolean;
    v_second  boolean := v_board.ties = 'second';
BEGIN
    SELECT * INTO v_lane FROM centile_store.board_lanes l
    WHERE l.board_id = p_board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1 FOR UPDATE;
    IF NOT FOUND OR (v_board.structure_revision, v_lane.batch, pg_postmaster_start_time()) IS DISTINCT FROM (p_revision, p_batch, p_server_started_at) THEN
        RETURN;
    END IF;
    batch := v_lane.batch + 1;
    SELECT max(coalesce(e.occurred_at, p_at)) FILTER (WHERE e.rule IS NULL), bool_or(e.external_id IS NOT NULL), bool_or(e.rule IS NOT NULL)
    INTO v_last_at, v_has_ids, v_breaks FROM unnest(p_events) e;
    IF p_metadata IS NOT NULL THEN
        p_metadata := centile_store.unerased_metadata(p_events, p_metadata);
    END IF;
    WITH written AS (
        INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, tiebreak, second_number, reason, occurred_at, lane, batch, metadata)
        SELECT e.board_id, e.user_id, 'score', e.points, CASE WHEN NOT v_second THEN e.tiebreak END, CASE WHEN v_second THEN e.tiebreak END, e.reason, coalesce(e.occurred_at, p_at), p_lane, batch, p_metadata[e.ordinality]::json
        FROM unnest(p_events) WITH ORDINALITY e WHERE e.rule IS NULL ORDER BY e.ordinality
        RETURNING id)
    SELECT array_agg(w.id ORDER BY w.id) INTO transaction_ids FROM written w;
    IF v_breaks THEN
        WITH kept AS (
            INSERT INTO centile_store.quarantine (board_id, user_id, lane, points, tiebreak, second_number, reason, external_id, rule, detail, submitted_at, metadata)
            SELECT e.board_id, e.user_id, p_lane, e.points, CASE WHEN NOT v_second THEN e.tiebreak END, CASE WHEN v_second THEN e.tiebreak END, e.reason, e.external_id, e.rule, e.detail, p_at, p_metadata[e.ordinality]::json
            FROM unnest(p_events) WITH ORDINALITY e WHERE e.rule IS NOT NULL ORDER BY e.ordinality
            RETURNING id)
        SELECT array_agg(k.id ORDER BY k.id) INTO quarantine_ids FROM kept k;
    END IF;
    IF v_has_ids THEN
        INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, quarantine_id, occurred_at, standings, expires_at)
        SELECT e.board_id, e.user_id, p_lane, e.external_id, CASE WHEN e.rule IS NULL THEN transaction_ids[e.n] END,
               CASE WHEN e.rule IS NOT NULL THEN quarantine_ids[e.n] END, coalesce(e.occurred_at, p_at), e.standings, now() + p_keep_ids
        FROM (SELECT e.*, row_number() OVER (PARTITION BY e.rule IS NULL ORDER BY e.ordinality) AS n FROM unnest(p_events) WITH ORDINALITY e) e
        WHERE e.external_id IS NOT NULL
        ORDER BY e.user_id, e.external_id COLLATE "C";
    END IF;
    IF p_member_users <> '{}' THEN
        PERFORM centile_store.record_segments(v_lane, p_member_users, p_member_segments);
    END IF;
    IF v_board.is_template THEN
        p_entries.ranking_ids := centile_store.board_entries(p_board_id, p_entries, p_entry_boards);
    END IF;
    PERFORM centile_store.write_players(v_lane, p_players);
    IF v_board.has_league THEN
        PERFORM centile_store.join_league(p_board_id, p_entries);
    END IF;
    PERFORM centile_store.advance_lane(v_lane, v_last_at, p_entries);
END
$$;

COMMENT ON FUNCTION centile_store.commit_batch(integer, smallint, bigint, bigint, timestamptz, timestamptz, interval, centile_store.pending_event[], centile_store.player_standings[], centile_store.logged_entries, text[], integer[], bigint[], text[]) IS
'Writes a batch if the state is still that of begin_batch. Example: SELECT c.batch IS NULL AS is_stale FROM centile_store.commit_batch(1, 0::smallint, -1, 0, now(), ''2024-01-17 20:00Z'', NULL, ''{}'', ''{}'', NULL, NULL, ''{}'', ''{}'', ''{}'') c;';
