-- How scores get in: everything a batch changes, in one transaction of one lane. The service's writers call it with what
-- arrived at the same moment; centile.submit_score calls it with one event.
--
-- Every event is answered by itself: outcome 'accepted', 'quarantined', or a refusal whose reason is in detail. p_times brings times of
-- its own (import); without it, or where it has none, the lane's clock gives one that no event of the lane is after. An event of
-- somebody who is no user yet is refused as 'unknown_user': make the user, and send it again. Rules against cheating are for what comes
-- live: an import is an administrator's, and of the rules only the bounds of points hold for it.
--
-- batch is the number of the lane's last batch now: whoever has seen it has seen all that is acknowledged here. crowded names
-- the rankings in which a stripe was seen to have grown out of its size.
--
-- CB001 is raised before anything is written when a period that holds the time is not open: call again. p_open opens it, for live
-- events; whoever writes often spares the look at it, and asks for it in that other call.
CREATE FUNCTION centile_store.record_scores(
    p_board_id  integer,
    p_lane      smallint,
    p_user_ids  text[],
    p_points    bigint[],
    p_reasons   text[],
    p_ids       text[],
    p_tiebreaks smallint[],
    p_times     timestamptz[] DEFAULT NULL,
    p_keep_ids  interval DEFAULT interval '7 days',
    p_open      boolean DEFAULT true
)
RETURNS TABLE (event integer, outcome text, detail text, repeated boolean, result json, batch bigint, crowded bigint[])
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_board    centile_store.boards;
    v_lane     centile_store.board_lanes;
    v_has_ids  boolean := array_remove(p_ids, NULL) <> '{}';
    v_hashes   bytea[];
    v_claimed  text[];
    v_outcomes text[];
    v_users    bigint[];
    v_times    timestamptz[];
    v_at       timestamptz;
    v_now      timestamptz;
    v_keeps    boolean;
    v_judged   record;
    v_details  text[];
    v_kept     json[];
    v_changes  centile_store.entry_change[];
    v_ids      bigint[] := '{}';
    v_id_of    bigint[];
    v_results  json[];
    v_repeated boolean[];
    v_fold     record;
    v_crowded  bigint[];
BEGIN
    -- 1. The structure lock; exclusive from the start when a period has to be opened and the caller lets it be looked for.
    IF p_open THEN
        SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
        -- The time that the next event of the lane would get now.
        SELECT greatest(clock_timestamp(), last_at) INTO v_at
        FROM centile_store.board_lanes WHERE board_id = p_board_id AND lane = p_lane ORDER BY batch DESC LIMIT 1;
        IF v_at IS NOT NULL AND (p_times IS NULL OR array_position(p_times, NULL) IS NOT NULL) AND centile_store.has_unopened_period(v_board, v_at) THEN
            PERFORM centile.open_periods(p_board_id, ARRAY[v_at]);
        END IF;
    END IF;
    v_board := centile_store.lock_structure(p_board_id, false);

    -- 2. The callers' ids, in id order: claimed here, or answered from what they were given before.
    IF v_has_ids THEN
        SELECT array_agg(CASE WHEN e.id IS NOT NULL THEN
                   sha256(convert_to(jsonb_build_array(e.user_id, e.points, e.reason, e.tiebreak, e.at)::text, 'UTF8')) END ORDER BY e.event)
        INTO v_hashes
        FROM unnest(p_user_ids, p_points, p_reasons, p_ids, p_tiebreaks, p_times) WITH ORDINALITY
            AS e (user_id, points, reason, id, tiebreak, at, event);

        WITH claimed AS (
            INSERT INTO centile_store.transaction_ids (board_id, external_id, content_hash, expires_at)
            SELECT p_board_id, i.id, i.hash, clock_timestamp() + p_keep_ids
            FROM (SELECT DISTINCT ON (id COLLATE "C") id, hash
                  FROM unnest(p_ids, v_hashes) WITH ORDINALITY AS x (id, hash, event)
                  WHERE id IS NOT NULL
                  ORDER BY id COLLATE "C", event) i
            ORDER BY i.id COLLATE "C"
            ON CONFLICT ON CONSTRAINT transaction_ids_pkey DO NOTHING
            RETURNING external_id)
        SELECT array_agg(external_id) INTO v_claimed FROM claimed;

        SELECT array_agg(CASE WHEN e.id = ANY (v_claimed) OR e.id IS NULL THEN NULL
                              WHEN t.content_hash IS NULL THEN 'retry' WHEN t.content_hash = e.hash THEN 'repeated' ELSE 'id_conflict' END
                         ORDER BY e.event)
        INTO v_outcomes
        FROM unnest(p_ids, v_hashes) WITH ORDINALITY AS e (id, hash, event)
        LEFT JOIN LATERAL (SELECT * FROM centile_store.transaction_ids t
                           WHERE t.board_id = p_board_id AND t.external_id = e.id LIMIT 1) t ON true;
    END IF;

    -- 3. The lane's row. From here on this lane is ours alone.
    SELECT * INTO v_lane FROM centile_store.board_lanes
    WHERE board_id = p_board_id AND lane = p_lane ORDER BY batch DESC LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'board % has no lane %', v_board.slug, p_lane USING ERRCODE = 'CB001', HINT = 'Look the board up and call again.';
    END IF;

    -- 4. The time of all live events of the batch.
    v_now := clock_timestamp();
    v_at := greatest(v_now, v_lane.last_at);

    -- 5. What can be said of each event by itself. Points that are to be kept apart are judged below; those that no ledger takes are refused.
    v_keeps := p_times IS NULL AND v_board.on_violation = 'quarantine';
    SELECT array_agg(c.internal_id), array_agg(coalesce(c.at, v_at)), array_agg(c.outcome)
    INTO v_users, v_times, v_outcomes
    FROM (
        SELECT e.at, u.id AS internal_id,
               CASE
                   WHEN e.outcome IS NOT NULL THEN e.outcome
                   WHEN u.id IS NULL THEN 'unknown_user'
                   -- The caller knows another number of lanes: it looks the board up again.
                   WHEN u.lane_hash % v_board.lanes <> p_lane THEN 'retry'
                   WHEN u.banned_at IS NOT NULL OR b.banned THEN 'banned'
                   WHEN e.points IS NULL OR e.points NOT BETWEEN CASE WHEN v_keeps THEN -9223372036854775807 ELSE v_board.points_min END
                       AND CASE WHEN v_keeps THEN 9223372036854775807 ELSE v_board.points_max END THEN 'points_out_of_bounds'
                   WHEN e.tiebreak IS NOT NULL AND v_board.ties <> 'tiebreak' THEN 'tiebreak_not_used'
                   WHEN e.tiebreak NOT BETWEEN -2048 AND 2047 THEN 'tiebreak_out_of_range'
                   WHEN e.at > v_now THEN 'time_in_future'
                   WHEN coalesce(e.at, v_at) NOT BETWEEN '2000-01-01 00:00:00+00' AND '2071-01-01 00:00:00+00' THEN 'time_out_of_range'
               END AS outcome
        FROM unnest(p_user_ids, p_points, p_tiebreaks, p_times, v_outcomes) WITH ORDINALITY
            AS e (user_id, points, tiebreak, at, outcome, event)
        -- LIMIT keeps each of these a look-up by key, whatever was known of the tables when this was planned.
        LEFT JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.external_id = e.user_id LIMIT 1) u ON true
        LEFT JOIN LATERAL (SELECT * FROM centile_store.board_players b
                           WHERE b.board_id = p_board_id AND b.user_id = u.id LIMIT 1) b ON true
        ORDER BY e.event) c;

    IF v_has_ids THEN
        -- Of an id that comes twice the first event that is not refused has it; a refused one leaves it to the next.
        SELECT array_agg(CASE
                   WHEN c.outcome IS NOT NULL OR c.id IS NULL OR c.first_event = c.event THEN c.outcome
                   WHEN c.first_hash = c.hash THEN 'repeated' ELSE 'id_conflict' END ORDER BY c.event)
        INTO v_outcomes
        FROM (SELECT e.*, first_value(e.event) OVER same AS first_event, first_value(e.hash) OVER same AS first_hash
              FROM unnest(p_ids, v_outcomes, v_hashes) WITH ORDINALITY AS e (id, outcome, hash, event)
              WINDOW same AS (PARTITION BY e.id ORDER BY e.outcome IS NOT NULL, e.event)) c;
    END IF;

    IF 'retry' = ANY (v_outcomes) THEN
        RAISE EXCEPTION 'an id was forgotten, or the board''s lanes changed, while the batch was on its way' USING ERRCODE = 'CB001', HINT = 'Call again.';
    END IF;

    IF v_keeps OR p_times IS NULL AND (v_board.events_per_minute IS NOT NULL OR v_board.gain_max <> '{}') THEN
        v_judged := centile_store.broken_rules(v_board, v_users, p_points, v_at, v_outcomes);
        v_outcomes := v_judged.outcomes;
        v_details := v_judged.details;
        IF v_keeps AND array_remove(v_details, NULL) <> '{}' THEN
            v_judged := centile_store.quarantine_events(v_board, v_users, p_points, p_reasons, p_ids, p_tiebreaks, v_at, v_outcomes, v_details);
            v_outcomes := v_judged.outcomes;
            v_kept := v_judged.results;
        END IF;
    END IF;

    -- 6. What the others do to the standings, event by event.
    v_fold := centile_store.fold_events(v_board, v_users, p_points, p_tiebreaks, v_times, v_outcomes);
    -- An imported event from before a reset does not count, but the fold adds it: it may take a sum out of range, or bring
    -- it back.
    IF v_fold.overflows OR (p_times IS NOT NULL AND EXISTS (
           SELECT FROM centile_store.board_players b
           WHERE b.board_id = p_board_id AND b.user_id = ANY (v_users) AND b.was_reset)) THEN
        v_outcomes := centile_store.refuse_overflows(v_board, v_users, p_points, v_times, v_outcomes);
        v_fold := centile_store.fold_events(v_board, v_users, p_points, p_tiebreaks, v_times, v_outcomes);
    END IF;
    v_changes := v_fold.changes;
    v_outcomes := v_fold.outcomes;
    IF v_fold.missing THEN
        RAISE EXCEPTION 'a period of board % has to be opened first', v_board.slug USING ERRCODE = 'CB001', HINT = 'Call again.';
    END IF;

    -- 7. Ledger, standings, lane.
    IF array_position(v_outcomes, NULL) IS NOT NULL THEN
        WITH written AS (
            INSERT INTO centile_store.score_transactions
                (board_id, user_id, kind, points, tiebreak, reason, occurred_at, lane, batch)
            SELECT p_board_id, e.user_id, 'score', e.points, e.tiebreak, e.reason, e.at, p_lane, v_lane.batch + 1
            FROM unnest(v_users, p_points, p_tiebreaks, p_reasons, v_times, v_outcomes) WITH ORDINALITY
                AS e (user_id, points, tiebreak, reason, at, outcome, event)
            WHERE e.outcome IS NULL
            ORDER BY e.event
            RETURNING id)
        SELECT array_agg(id ORDER BY id) INTO v_ids FROM written;

        -- Few events fill no stripe: small batches look now and then, by an odd number, since newcomers' may be every second one.
        v_crowded := centile_store.place_entries(p_lane, v_changes, cardinality(p_user_ids) >= 64 OR v_lane.batch % 7 = 0);
        IF p_times IS NOT NULL THEN
            PERFORM centile_store.recompute_reset_players(v_board, p_lane, v_users, v_times, v_outcomes);
        END IF;

        IF p_times IS NOT NULL THEN
            SELECT max(e.at) INTO v_at FROM unnest(v_times, v_outcomes) AS e (at, outcome) WHERE e.outcome IS NULL;
        END IF;
        PERFORM centile_store.advance_lane(v_lane, v_at, ARRAY(
            SELECT e.user_id FROM unnest(v_users, v_outcomes) AS e (user_id, outcome) WHERE e.outcome IS NULL));
    END IF;

    -- 8. The answers; those with an id are remembered, and the ids of refused events are free again.
    IF cardinality(v_ids) = cardinality(v_outcomes) THEN
        v_id_of := v_ids;
    ELSE
        SELECT array_agg(CASE WHEN e.outcome IS NULL THEN v_ids[e.accepted] END ORDER BY e.event) INTO v_id_of
        FROM (SELECT event, outcome, count(*) FILTER (WHERE outcome IS NULL) OVER (ORDER BY event) AS accepted
              FROM unnest(v_outcomes) WITH ORDINALITY AS e (outcome, event)) e;
    END IF;
    SELECT array_agg(x.result) INTO v_results
    FROM (
        SELECT CASE WHEN e.outcome IS NULL THEN json_build_object(
                   'transaction_id', e.id, 'occurred_at', e.at, 'periods', coalesce(c.periods, '{}')) ELSE e.kept END AS result
        FROM unnest(v_outcomes, v_times, v_id_of, v_kept) WITH ORDINALITY AS e (outcome, at, id, kept, event)
        LEFT JOIN (
            SELECT s.event, json_object_agg(s.period, json_build_object(
                       'ranking_id', s.ranking_id, 'user', s.user_id, 'score', s.score, 'was', s.was)) AS periods
            FROM (SELECT c.*, coalesce(lag(ARRAY[c.rank_key, c.tie_key]) OVER (PARTITION BY c.ranking_id, c.user_id ORDER BY c.event),
                                       nullif(ARRAY[c.was_rank_key, c.was_tie_key], '{NULL,NULL}')) AS was
                  FROM unnest(v_changes) AS c WHERE p_times IS NULL) s
            GROUP BY s.event) c ON c.event = e.event
        ORDER BY e.event) x;

    IF v_has_ids THEN
        UPDATE centile_store.transaction_ids t
        SET result = e.result::jsonb, content_hash = e.hash
        FROM unnest(p_ids, v_results, v_hashes) AS e (id, result, hash)
        WHERE e.result IS NOT NULL AND t.board_id = p_board_id AND t.external_id = e.id;
        DELETE FROM centile_store.transaction_ids t
        WHERE t.board_id = p_board_id AND t.external_id = ANY (v_claimed) AND t.result IS NULL;

        -- The same id twice in a batch and the first refused: the second is refused for the same reason.
        SELECT array_agg(e.is_repeated ORDER BY e.event),
               array_agg(CASE WHEN NOT e.is_repeated THEN e.outcome WHEN t.result IS NULL THEN e.first_outcome END ORDER BY e.event),
               array_agg(coalesce(e.result, t.result::json) ORDER BY e.event)
        INTO v_repeated, v_outcomes, v_results
        FROM (SELECT x.*, x.outcome IS NOT DISTINCT FROM 'repeated' AS is_repeated,
                     first_value(x.outcome) OVER (PARTITION BY x.id ORDER BY x.event) AS first_outcome
              FROM unnest(p_ids, v_outcomes, v_results) WITH ORDINALITY AS x (id, outcome, result, event)) e
        LEFT JOIN LATERAL (SELECT * FROM centile_store.transaction_ids t
                           WHERE e.is_repeated AND t.board_id = p_board_id AND t.external_id = e.id LIMIT 1) t ON true;
        IF 'repeated' = ANY (v_outcomes) THEN
            RAISE EXCEPTION 'an id was forgotten while the batch was on its way' USING ERRCODE = 'CB001', HINT = 'Call again.';
        END IF;
    END IF;

    RETURN QUERY
    SELECT e.event::integer,
           coalesce(e.outcome, CASE WHEN e.repeated AND e.result ->> 'quarantine_id' IS NOT NULL THEN 'quarantined' END, 'accepted'),
           CASE e.outcome WHEN 'points_out_of_bounds' THEN format('%s to %s', v_board.points_min, v_board.points_max) ELSE e.detail END,
           coalesce(e.repeated, false),
           e.result,
           v_lane.batch + (cardinality(v_ids) > 0)::integer,
           v_crowded
    FROM unnest(v_outcomes, v_results, v_repeated, v_details) WITH ORDINALITY AS e (outcome, result, repeated, detail, event)
    ORDER BY e.event;
END
$$;

COMMENT ON FUNCTION centile_store.record_scores(integer, smallint, text[], bigint[], text[], text[], smallint[], timestamptz[], interval, boolean) IS
'Writes a batch of events of one lane and answers each. Example: SELECT * FROM centile_store.record_scores(1, 0::smallint, ''{ann}'', ''{10}'', ''{won a match}'', ''{NULL}'', ''{NULL}'');';
