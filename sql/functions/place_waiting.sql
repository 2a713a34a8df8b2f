-- A step after closing a period: the players who have scored in the next one meanwhile get their
-- cohorts, in the order of arrival. Each step is a batch of lane 0, so that it counts as a writer of
-- this lane, and followers of the board notice it.
CREATE OR REPLACE FUNCTION centile_store.place_waiting(p_limit integer DEFAULT 1000) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_league centile_store.leagues;
    v_lane   centile_store.board_lanes;
    v_users  bigint[];
BEGIN
    SELECT * INTO v_league FROM centile_store.leagues l
    WHERE l.deleted_at IS NULL AND EXISTS (SELECT FROM centile_store.league_members m
                                           WHERE m.league_id = l.id AND m.period_id = l.period_id AND m.division IS NULL) LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM centile_store.lock_structure(v_league.board_id, false, 0::smallint);
    SELECT * INTO STRICT v_lane FROM centile_store.board_lanes l
    WHERE l.board_id = v_league.board_id AND l.lane = 0 ORDER BY l.batch DESC LIMIT 1 FOR UPDATE;
    SELECT * INTO STRICT v_league FROM centile_store.leagues l WHERE l.id = v_league.id;
    v_users := ARRAY(SELECT m.user_id FROM centile_store.league_members m
                     WHERE m.league_id = v_league.id AND m.period_id = v_league.period_id AND m.division IS NULL ORDER BY m.seq LIMIT p_limit);
    PERFORM centile_store.place_members(v_league, v_users);
    PERFORM centile_store.advance_lane(v_lane, v_lane.last_at);
    RETURN cardinality(v_users);
END
$$;

COMMENT ON FUNCTION centile_store.place_waiting(integer) IS
'Gives up to p_limit waiting players of a league their cohorts, and returns their number; 0 when no player waits. Example: SELECT centile_store.place_waiting();';
GRANT EXECUTE ON FUNCTION centile_store.place_waiting(integer) TO centile_operator;
