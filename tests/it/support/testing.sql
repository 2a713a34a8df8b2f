-- Writes scores from SQL, for tests that need some: rows of the ledger, and then the entries that
-- the ledger gives. Shares no code with the service's writers. Tests of these use HTTP or `centile
-- import`.
CREATE SCHEMA testing;
GRANT USAGE ON SCHEMA testing TO centile_service;

-- Writes a batch of one lane; all events are accepted. Without p_times, their time is the lane's
-- clock. Applies the batch unless testing.defers is on.
CREATE FUNCTION testing.record_scores(
    p_board_id integer, p_lane smallint, p_users text[], p_points bigint[], p_reasons text[] DEFAULT '{}', p_ids text[] DEFAULT '{}',
    p_tiebreaks smallint[] DEFAULT '{}', p_times timestamptz[] DEFAULT NULL)
RETURNS SETOF bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_board centile_store.boards;
    v_lane  centile_store.board_lanes;
    v_ids   bigint[];
    v_at    timestamptz;
    v_users bigint[];
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    SELECT greatest(clock_timestamp(), max(l.last_at)) INTO v_at FROM centile_store.board_lanes l WHERE l.board_id = p_board_id AND l.lane = p_lane;
    PERFORM centile.open_periods(p_board_id, coalesce(p_times, ARRAY[v_at]));
    PERFORM centile_store.lock_structure(p_board_id, false);
    SELECT * INTO STRICT v_lane FROM centile_store.board_lanes WHERE board_id = p_board_id AND lane = p_lane ORDER BY batch DESC LIMIT 1 FOR UPDATE;
    v_users := ARRAY(SELECT u.id FROM unnest(p_users) WITH ORDINALITY AS e (name, n) JOIN centile_store.users u ON u.external_id = e.name ORDER BY e.n);
    ASSERT cardinality(v_users) = cardinality(p_users), 'all users exist';
    WITH written AS (
        INSERT INTO centile_store.score_transactions (board_id, user_id, points, tiebreak, reason, occurred_at, lane, batch)
        SELECT p_board_id, e.user_id, e.points, e.tiebreak, e.reason, coalesce(e.at, v_at), p_lane, v_lane.batch + 1
        FROM unnest(v_users, p_points, p_tiebreaks, p_reasons, p_times) WITH ORDINALITY AS e (user_id, points, tiebreak, reason, at, n)
        WHERE e.user_id IS NOT NULL
        ORDER BY e.n
        RETURNING id)
    SELECT array_agg(id ORDER BY id) INTO v_ids FROM written;
    INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, occurred_at)
    SELECT p_board_id, e.user_id, p_lane, e.id, e.transaction_id, coalesce(e.at, v_at)
    FROM unnest(v_users, p_ids, v_ids, p_times) AS e (user_id, id, transaction_id, at) WHERE e.id IS NOT NULL;
    PERFORM centile_store.write_act(v_lane, (SELECT max(coalesce(t.at, v_at)) FROM unnest(coalesce(p_times, ARRAY[v_at])) AS t (at)), v_users[1], centile_store.entry_changes(
        ARRAY(SELECT DISTINCT p.ranking_id FROM unnest(coalesce(p_times, ARRAY[v_at])) AS t (at)
              CROSS JOIN LATERAL centile_store.periods_at(p_board_id, v_board.periods, coalesce(t.at, v_at)) p WHERE p.ranking_id IS NOT NULL),
        v_users));
    IF current_setting('testing.defers', true) IS DISTINCT FROM 'on' THEN
        WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(p_board_id) a) LOOP END LOOP;
    END IF;
    RETURN QUERY SELECT unnest(v_ids);
END
$$;

-- Writes one score at the current time.
CREATE FUNCTION testing.submit_score(
    p_board text, p_user text, p_points bigint, p_reason text DEFAULT NULL, p_id text DEFAULT NULL, p_tiebreak smallint DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE slug = p_board;
    PERFORM centile.ensure_ledger_months(now(), now());
    PERFORM centile.ensure_users(ARRAY[p_user]);
    RETURN (SELECT r FROM testing.record_scores(v_board.id, (centile.lane_hash(p_user) % v_board.lanes)::smallint,
        ARRAY[p_user], ARRAY[p_points], ARRAY[p_reason], ARRAY[p_id], ARRAY[p_tiebreak]) r);
END
$$;
