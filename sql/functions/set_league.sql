-- Absent rules of a new league: fill arrival, idle leave, ties up; those of an existing one stay. Board,
-- period, size and divisions cannot change. A league starts in the current period if no player has a
-- standing in it, and otherwise in the next one.
CREATE OR REPLACE FUNCTION centile.set_league(p_name text, p_board text, p_period text, p_size integer, p_divisions text[], p_promote integer, p_relegate integer,
    p_fill text DEFAULT NULL, p_idle text DEFAULT NULL, p_ties text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    c_shown CONSTANT text[] := '{id,board_id,created_at,starts_at,next_from,period_id,closed_id,deleted_at}';
    v_board centile_store.boards := centile_store.board_named(p_board, true);
    v_was   centile_store.leagues;
    v_is    centile_store.leagues;
    v_now   timestamptz;
    v_name  text;
    v_field text;
    v_error text[];
BEGIN
    IF v_board.is_template OR centile_store.owner_of(v_board.id) <> v_board.id THEN
        RAISE EXCEPTION 'a board of a template cannot have a league' USING ERRCODE = 'CB409', DETAIL = 'board_of_template', HINT = 'Create a board of its own.';
    ELSIF to_regclass('centile_lanes.groups') IS NOT NULL THEN
        RAISE EXCEPTION 'a cluster has no leagues' USING ERRCODE = 'CB409';
    END IF;
    PERFORM centile_store.check_written(v_board);
    v_board := centile_store.lock_structure(v_board.id, true);
    SELECT * INTO v_was FROM centile_store.leagues l WHERE (l.name = p_name OR l.board_id = v_board.id) AND l.deleted_at IS NULL ORDER BY l.name <> p_name LIMIT 1;
    IF v_was.name <> p_name THEN
        RAISE EXCEPTION 'board % already has league %', p_board, v_was.name USING ERRCODE = 'CB409', DETAIL = 'league_exists', HINT = 'Delete that league first.';
    ELSIF (v_was.board_id, v_was.kind, v_was.size, v_was.divisions) <> (v_board.id, p_period, p_size, p_divisions) THEN
        RAISE EXCEPTION 'board, period, size and divisions of league % cannot change', p_name USING ERRCODE = 'CB409', DETAIL = 'league_exists', HINT = 'Create another league.';
    ELSIF v_was.id IS NULL AND (p_period = ANY (v_board.periods) AND p_period <> 'all_time') IS NOT TRUE THEN
        RAISE EXCEPTION 'is not a kind of period of the board, such as week' USING ERRCODE = 'CB422', DETAIL = 'period';
    -- An interrupted closing may have relegated idle players already.
    ELSIF v_was.idle <> coalesce(p_idle, v_was.idle) AND EXISTS (SELECT FROM centile_store.periods p WHERE p.id = v_was.period_id AND p.state <> 'closed' AND p.cut_off_at IS NOT NULL) THEN
        RAISE EXCEPTION 'a period of league % is being closed', p_name USING ERRCODE = 'CB001', HINT = 'Retry afterwards.';
    END IF;
    BEGIN
        IF v_was.id IS NULL THEN
            v_now := clock_timestamp();
            INSERT INTO centile_store.leagues (board_id, name, kind, size, divisions, promote, relegate, fill, idle, ties, starts_at, next_from, period_id)
            SELECT v_board.id, p_name, p_period, p_size, p_divisions, p_promote, p_relegate, coalesce(p_fill, 'arrival'), coalesce(p_idle, 'leave'), coalesce(p_ties, 'up'),
                   s.starts_at, s.starts_at, s.period_id
            FROM centile_store.league_start(v_board, p_period, v_now) s
            RETURNING * INTO v_is;
            UPDATE centile_store.boards b SET has_league = true WHERE b.id = v_board.id;
        ELSE
            UPDATE centile_store.leagues l
            SET promote = p_promote, relegate = p_relegate, fill = coalesce(p_fill, l.fill), idle = coalesce(p_idle, l.idle), ties = coalesce(p_ties, l.ties)
            WHERE l.id = v_was.id RETURNING * INTO v_is;
        END IF;
    EXCEPTION WHEN check_violation OR not_null_violation THEN
        GET STACKED DIAGNOSTICS v_name = CONSTRAINT_NAME, v_field = COLUMN_NAME;
        v_error := (SELECT regexp_match(obj_description(c.oid, 'pg_constraint'), '^([a-z_]+): (.+)$')
                    FROM pg_constraint c WHERE c.conrelid = 'centile_store.leagues'::regclass AND c.conname = v_name);
        RAISE EXCEPTION '%', coalesce(v_error[2], 'is missing') USING ERRCODE = 'CB422', DETAIL = coalesce(v_error[1], v_field);
    END;
    PERFORM centile_store.note_act(p_actor, CASE WHEN v_was.id IS NULL THEN 'create_league' ELSE 'change_league' END, v_board.id,
        CASE WHEN v_was.id IS NOT NULL THEN to_jsonb(v_was) - c_shown END, to_jsonb(v_is) - c_shown, p_name);
    RETURN v_is.id;
END
$$;

COMMENT ON FUNCTION centile.set_league(text, text, text, integer, text[], integer, integer, text, text, text, text) IS
'Creates a league of a board, or changes how many players move and how. Example: SELECT centile.set_league(''weeks'', ''arena'', ''week'', 30, ''{bronze,silver}'', 7, 7) > 0 AS is_set;';
