-- Writes scores from SQL, for tests that need some: rows of the ledger, and then the entries that
-- the ledger gives. Shares no code with the service's writers. Tests of these use HTTP or `centile
-- import`.
CREATE SCHEMA testing;
GRANT USAGE ON SCHEMA testing TO centile_service;

-- Writes a batch of one lane; all events are accepted. Without p_times, their time is the lane's
-- clock. Applies the batch unless testing.defers is on.
CREATE FUNCTION testing.record_scores(
    p_board_id integer, p_lane smallint, p_users text[], p_points bigint[], p_reasons text[] DEFAULT '{}', p_ids text[] DEFAULT '{}',
    p_tiebreaks bigint[] DEFAULT '{}', p_times timestamptz[] DEFAULT NULL)
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
    PERFORM centile_store.open_periods(p_board_id, coalesce(p_times, ARRAY[v_at]));
    PERFORM centile_store.lock_structure(p_board_id, false);
    SELECT * INTO STRICT v_lane FROM centile_store.board_lanes WHERE board_id = p_board_id AND lane = p_lane ORDER BY batch DESC LIMIT 1 FOR UPDATE;
    v_users := ARRAY(SELECT u.id FROM unnest(p_users) WITH ORDINALITY AS e (name, n) JOIN centile_store.users u ON u.external_id = e.name ORDER BY e.n);
    ASSERT cardinality(v_users) = cardinality(p_users), 'all users exist';
    WITH written AS (
        INSERT INTO centile_store.score_transactions (board_id, user_id, points, tiebreak, second_number, reason, occurred_at, lane, batch)
        SELECT p_board_id, e.user_id, e.points, CASE v_board.ties WHEN 'tiebreak' THEN e.tiebreak END, CASE v_board.ties WHEN 'second' THEN e.tiebreak END, e.reason, coalesce(e.at, v_at), p_lane, v_lane.batch + 1
        FROM unnest(v_users, p_points, p_tiebreaks, p_reasons, p_times) WITH ORDINALITY AS e (user_id, points, tiebreak, reason, at, n)
        WHERE e.user_id IS NOT NULL
        ORDER BY e.n
        RETURNING id)
    SELECT array_agg(id ORDER BY id) INTO v_ids FROM written;
    INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, occurred_at)
    SELECT p_board_id, e.user_id, p_lane, e.id, e.transaction_id, coalesce(e.at, v_at)
    FROM unnest(v_users, p_ids, v_ids, p_times) AS e (user_id, id, transaction_id, at) WHERE e.id IS NOT NULL;
    PERFORM centile_store.write_act(v_lane.board_id, v_lane, (SELECT max(coalesce(t.at, v_at)) FROM unnest(coalesce(p_times, ARRAY[v_at])) AS t (at)), v_users[1], centile_store.entry_changes(
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
    p_board text, p_user text, p_points bigint, p_reason text DEFAULT NULL, p_id text DEFAULT NULL, p_tiebreak bigint DEFAULT NULL)
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

CREATE FUNCTION testing.change_entry() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    v_row    centile_store.leaderboard := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    v_period record;
BEGIN
    SELECT w.id, w.board_id, b.score_order INTO STRICT v_period
    FROM centile_store.rankings g
    JOIN centile_store.periods q ON q.id = g.period_id
    JOIN centile_store.periods w ON w.board_id = q.board_id AND w.kind = q.kind AND w.label = q.label AND w.segment = ''
    JOIN centile_store.boards b ON b.id = q.board_id
    WHERE g.id = v_row.ranking_id;
    IF TG_OP = 'UPDATE' AND NEW.score <> OLD.score AND NEW.rank_key = OLD.rank_key THEN
        v_row.rank_key := centile.rank_key(NEW.score, v_period.score_order);
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.reached_at <> OLD.reached_at AND NEW.tie_key = OLD.tie_key THEN
        v_row.tie_key := OLD.tie_key - extract(epoch FROM NEW.reached_at - OLD.reached_at)::bigint * 1000000;
    END IF;
    UPDATE centile_store.players p
    SET lane = v_row.lane,
        period_ids = ARRAY(SELECT u.id FROM unnest(p.period_ids, p.rank_keys, p.tie_keys) WITH ORDINALITY AS u (id, r, t, n) WHERE u.id <> v_period.id ORDER BY n),
        rank_keys = ARRAY(SELECT u.r FROM unnest(p.period_ids, p.rank_keys, p.tie_keys) WITH ORDINALITY AS u (id, r, t, n) WHERE u.id <> v_period.id ORDER BY n),
        tie_keys = ARRAY(SELECT u.t FROM unnest(p.period_ids, p.rank_keys, p.tie_keys) WITH ORDINALITY AS u (id, r, t, n) WHERE u.id <> v_period.id ORDER BY n),
        zero_periods = array_remove(p.zero_periods, v_period.id)
    WHERE p.board_id = v_period.board_id AND p.user_id = v_row.user_id;
    IF NOT FOUND THEN
        INSERT INTO centile_store.players (board_id, lane, user_id) VALUES (v_period.board_id, v_row.lane, v_row.user_id);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        UPDATE centile_store.players p
        SET period_ids = p.period_ids || v_period.id, rank_keys = p.rank_keys || v_row.rank_key, tie_keys = p.tie_keys || v_row.tie_key,
            zero_periods = CASE WHEN v_row.only_zeros THEN p.zero_periods || v_period.id ELSE p.zero_periods END
        WHERE p.board_id = v_period.board_id AND p.user_id = v_row.user_id;
    END IF;
    RETURN v_row;
END
$$;

-- Lets a test damage the entries of whole periods: from now on, an UPDATE, INSERT or DELETE of the view
-- leaderboard changes the rows of players, and nothing else.
CREATE FUNCTION testing.allow_damage() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    CREATE OR REPLACE TRIGGER change_entry INSTEAD OF INSERT OR UPDATE OR DELETE ON centile_store.leaderboard
    FOR EACH ROW EXECUTE FUNCTION testing.change_entry();
END
$$;

-- Builds a new ranking of a period, up to the swap.
CREATE FUNCTION testing.begin_rebuild(p_period_id bigint) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_ranking_id bigint := centile_store.begin_rebuild(p_period_id);
    v_lane       smallint;
BEGIN
    PERFORM centile_store.fill_bounds(v_ranking_id);
    FOR v_lane IN SELECT f.lane FROM centile_store.fillings f WHERE f.ranking_id = v_ranking_id LOOP
        WHILE (SELECT r.players > 0 FROM centile_store.fill_rows(v_ranking_id, v_lane) r) LOOP END LOOP;
    END LOOP;
    RETURN v_ranking_id;
END
$$;

-- Rebuilds a period, and returns the old ranking.
CREATE FUNCTION testing.rebuild(p_period_id bigint) RETURNS bigint
LANGUAGE sql
AS $$ SELECT centile_store.swap_ranking(testing.begin_rebuild(p_period_id), 2147483647) $$;
