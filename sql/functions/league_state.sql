-- Of a player in a period (p_period is a selector; NULL is the period that holds now), or of a cohort.
-- A player without a score in the period has no cohort, and waits while an earlier period is not
-- closed. NULL without a league, or if the league has no such cohort.
CREATE OR REPLACE FUNCTION centile_store.league_state(p_board_id integer, p_user text, p_period text DEFAULT NULL, p_cohort_id bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET timezone = 'UTC'
AS $$
DECLARE
    v_league  centile_store.leagues;
    v_cohort  centile_store.league_cohorts;
    v_period  record;
    v_member  centile_store.league_members;
    v_player  centile_store.league_players;
BEGIN
    SELECT * INTO v_league FROM centile_store.leagues l WHERE l.board_id = p_board_id AND l.deleted_at IS NULL;
    SELECT * INTO v_cohort FROM centile_store.league_cohorts c WHERE c.id = p_cohort_id AND c.league_id = v_league.id;
    IF v_league.id IS NULL OR v_cohort.id IS DISTINCT FROM p_cohort_id THEN
        RETURN NULL;
    END IF;
    SELECT r.kind || ':' || r.label AS name, r.state, r.starts_at, r.ends_at, r.period_id INTO v_period
    FROM centile.resolve_period(p_board_id, coalesce((SELECT p.kind || ':' || p.label FROM centile_store.periods p WHERE p.id = v_cohort.period_id), p_period, v_league.kind)) r
    WHERE r.kind = v_league.kind;
    IF NOT FOUND OR p_period LIKE '%@%' THEN
        RAISE EXCEPTION 'is not a period of the league: it has a cohort per %', v_league.kind USING ERRCODE = 'CB422', DETAIL = 'period';
    END IF;
    IF p_user IS NOT NULL THEN
        SELECT * INTO v_member FROM centile_store.league_members m
        WHERE m.league_id = v_league.id AND m.user_id = centile_store.user_named(p_user) AND m.period_id = v_period.period_id AND (m.cohort_id IS NOT NULL OR m.division IS NULL);
        SELECT * INTO v_player FROM centile_store.league_players p WHERE p.league_id = v_league.id AND p.user_id = centile_store.user_named(p_user);
    END IF;
    RETURN jsonb_build_object(
            'league', v_league.name, 'size', v_league.size,
            'period', jsonb_build_object('name', v_period.name, 'state', v_period.state, 'starts_at', v_period.starts_at, 'ends_at', v_period.ends_at,
                'seconds_left', greatest(0, ceil(extract(epoch FROM v_period.ends_at - statement_timestamp())))::bigint),
            'state', CASE WHEN coalesce(v_member.cohort_id, p_cohort_id) IS NOT NULL THEN 'placed' WHEN v_member.user_id IS NOT NULL THEN 'waiting' ELSE 'none' END,
            'cohort_id', NULL, 'promotion_rank', NULL, 'relegation_rank', NULL, 'rows', '[]'::jsonb,
            'division', CASE WHEN v_member.user_id IS NULL AND v_period.state <> 'closed' THEN
                v_league.divisions[coalesce(CASE WHEN v_player.period_id = v_league.period_id THEN v_player.division ELSE v_player.next_division END, 1)] END)
        || coalesce(centile_store.cohort_state(coalesce(v_member.cohort_id, p_cohort_id)), '{}');
END
$$;

COMMENT ON FUNCTION centile_store.league_state(integer, text, text, bigint) IS
'The cohort of a player in a period, with its members, or the cohort of an id. Example: SELECT centile_store.league_state(3, ''ann'') ->> ''state'' AS state;';
