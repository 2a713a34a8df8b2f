-- Before a cut-off. Players of the current period must have their cohorts, because none joins one
-- after it.
CREATE OR REPLACE FUNCTION centile_store.check_league(p_period centile_store.periods) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_league centile_store.leagues;
BEGIN
    SELECT * INTO v_league FROM centile_store.leagues l
    WHERE l.board_id = p_period.board_id AND l.kind = p_period.kind AND l.deleted_at IS NULL AND p_period.segment = '' AND p_period.starts_at >= l.next_from;
    IF v_league.period_id <> p_period.id THEN
        RAISE EXCEPTION 'an earlier period of league % is not closed', v_league.name USING ERRCODE = 'CB409', HINT = 'Close the earlier period first.';
    ELSIF EXISTS (SELECT FROM centile_store.league_members m WHERE m.league_id = v_league.id AND m.period_id = p_period.id AND m.division IS NULL) THEN
        RAISE EXCEPTION 'players of league % still wait for their cohorts', v_league.name USING ERRCODE = 'CB001', HINT = 'Retry: centile close --due continues.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_league(centile_store.periods) IS
'Raises an error if the league of its board does not permit to close a period yet. Example: SELECT centile_store.check_league(p) FROM centile_store.periods p WHERE p.id = 2;';
