-- All events, or none: an error names the place of its event in the array, from 0.
CREATE OR REPLACE FUNCTION centile.submit_many(p_events jsonb) RETURNS text[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_event    record;
    v_place    integer;
    v_member   text := 'events';
    v_points   bigint;
    v_tiebreak bigint;
    v_tickets  text[] := '{}';
    v_message  text;
    v_detail   text;
    v_hint     text;
    v_code     text;
BEGIN
    IF p_events IS NULL OR jsonb_typeof(p_events) <> 'array' OR jsonb_array_length(p_events) NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'events must be a JSON array of 1 to 1000 objects' USING ERRCODE = 'CB422', DETAIL = 'events';
    END IF;
    FOR v_event IN SELECT e.value, e.ordinality - 1 AS place FROM jsonb_array_elements(p_events) WITH ORDINALITY e ORDER BY e.ordinality LOOP
        v_place := v_event.place;
        IF jsonb_typeof(v_event.value) <> 'object' THEN
            RAISE EXCEPTION 'must be a JSON object' USING ERRCODE = 'CB422', DETAIL = 'events';
        END IF;
        SELECT min(m.key) INTO v_member FROM jsonb_each(v_event.value) m
        WHERE m.key <> ALL ('{board,user_id,points,id,tiebreak,reason,metadata}') OR m.key <> 'metadata' AND jsonb_typeof(m.value) IN ('object', 'array', 'boolean');
        IF v_member IS NOT NULL THEN
            RAISE EXCEPTION '% is not a member of an event, or has the wrong type', quote_literal(v_member) USING ERRCODE = 'CB422', DETAIL = v_member;
        END IF;
        v_member := 'points';
        v_points := (v_event.value ->> 'points')::bigint;
        v_member := 'tiebreak';
        v_tiebreak := (v_event.value ->> 'tiebreak')::bigint;
        v_tickets := v_tickets || centile.submit(v_event.value ->> 'board', v_event.value ->> 'user_id', v_points, v_event.value ->> 'id', v_tiebreak,
            v_event.value ->> 'reason', nullif(v_event.value -> 'metadata', 'null')::json);
    END LOOP;
    RETURN v_tickets;
EXCEPTION
    -- The last two for a number that is not whole, or beyond 64 bits.
    WHEN SQLSTATE 'CB404' OR SQLSTATE 'CB409' OR SQLSTATE 'CB422' OR invalid_text_representation OR numeric_value_out_of_range THEN
        GET STACKED DIAGNOSTICS v_message = MESSAGE_TEXT, v_detail = PG_EXCEPTION_DETAIL, v_hint = PG_EXCEPTION_HINT, v_code = RETURNED_SQLSTATE;
        RAISE EXCEPTION '%', concat('events[' || v_place || ']: ', v_message)
            USING ERRCODE = CASE WHEN v_code LIKE 'CB%' THEN v_code ELSE 'CB422' END, DETAIL = coalesce(nullif(v_detail, ''), v_member), HINT = coalesce(nullif(v_hint, ''), 'No event was submitted.');
END
$$;

COMMENT ON FUNCTION centile.submit_many(jsonb) IS
'Submits 1 to 1,000 events, objects with the members board, user_id, points, id, tiebreak, reason and metadata, like centile.submit, and returns their tickets. Example: SELECT cardinality(centile.submit_many(''[{"board": "arena", "user_id": "ann", "points": 50}, {"board": "arena", "user_id": "bob", "points": 40}]''));';
GRANT EXECUTE ON FUNCTION centile.submit_many(jsonb) TO centile_writer;
