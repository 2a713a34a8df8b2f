-- Keeps the events of a batch that break a rule apart, on a board that says so, and gives what is answered for each. No more than a
-- hundred of one player wait at a time: what comes beyond them is refused for the rule that it breaks, so that a flood fills nothing.
CREATE FUNCTION centile_store.quarantine_events(
    p_board centile_store.boards, p_users bigint[], p_points bigint[], p_reasons text[], p_ids text[], p_tiebreaks smallint[],
    p_at timestamptz, p_outcomes text[], p_details text[], OUT outcomes text[], OUT results json[])
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    v_waiting_max constant integer := 100;
    v_event record;
    v_id    bigint;
BEGIN
    outcomes := p_outcomes;
    results := array_fill(NULL::json, ARRAY[cardinality(p_outcomes)]);
    FOR v_event IN
        SELECT b.*, b.place + (SELECT count(*) FROM centile_store.quarantine q
                               WHERE q.board_id = p_board.id AND q.user_id = b.user_id AND q.state = 'waiting') AS waiting
        FROM (SELECT e.*, row_number() OVER (PARTITION BY e.user_id ORDER BY e.event) AS place
              FROM unnest(p_users, p_points, p_reasons, p_ids, p_tiebreaks, p_outcomes, p_details) WITH ORDINALITY
                  AS e (user_id, points, reason, id, tiebreak, rule, detail, event)
              WHERE e.detail IS NOT NULL) b
        ORDER BY b.event
    LOOP
        CONTINUE WHEN v_event.waiting > v_waiting_max;
        INSERT INTO centile_store.quarantine (board_id, user_id, points, tiebreak, reason, external_id, rule, detail, submitted_at)
        VALUES (p_board.id, v_event.user_id, v_event.points, v_event.tiebreak, v_event.reason, v_event.id, v_event.rule, v_event.detail, p_at)
        RETURNING id INTO v_id;
        outcomes[v_event.event] := 'quarantined';
        results[v_event.event] := json_build_object('quarantine_id', v_id, 'rule', v_event.rule, 'detail', v_event.detail);
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.quarantine_events(centile_store.boards, bigint[], bigint[], text[], text[], smallint[], timestamptz, text[], text[]) IS
'Keeps events that break a rule apart and gives what is answered for each. Example: SELECT q.outcomes, q.results[1] ->> ''rule'' AS rule FROM centile_store.boards b CROSS JOIN LATERAL centile_store.quarantine_events(b, ''{1}'', ''{5000}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''2024-01-17 20:00Z'', ''{points_out_of_bounds}'', ''{0 to 1000}'') q WHERE b.slug = ''ladder'';';
