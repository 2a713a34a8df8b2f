-- The last step of an act on players: writes their standings, then advances the lane. The caller
-- holds the structure lock and the lane. Even if no entry changes, the row of the player p_user_id
-- gets the batch, and the log names the player.
CREATE OR REPLACE FUNCTION centile_store.write_act(
    p_board_id integer, p_lane centile_store.board_lanes, p_at timestamptz, p_user_id bigint, p_changes centile_store.entry_change[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_entries centile_store.logged_entries;
    v_windows bigint[] := ARRAY(SELECT w.ranking_id FROM centile_store.filling_windows(p_lane.board_id, p_lane.lane) w WHERE w.standings_up_to >= p_user_id);
BEGIN
    IF v_windows <> '{}' THEN
        p_changes := p_changes || centile_store.entry_changes(v_windows, ARRAY[p_user_id]);
    END IF;
    PERFORM centile_store.write_players(p_lane, centile_store.changed_players(p_board_id, p_user_id, p_changes));
    SELECT array_agg(c.ranking_id), array_agg(c.user_id), array_agg(c.was_rank_key), array_agg(c.was_tie_key), array_agg(c.rank_key), array_agg(c.tie_key)
    INTO v_entries FROM unnest((NULL, p_user_id, NULL, NULL, NULL, NULL, NULL)::centile_store.entry_change || p_changes) AS c;
    PERFORM centile_store.join_league(b.id, v_entries) FROM centile_store.boards b WHERE b.id = p_lane.board_id AND b.has_league;
    PERFORM centile_store.advance_lane(p_lane, p_at, v_entries);
END
$$;

COMMENT ON FUNCTION centile_store.write_act(integer, centile_store.board_lanes, timestamptz, bigint, centile_store.entry_change[]) IS
'Writes the entries that an act changes, as a batch of the lane. Example: SELECT centile_store.write_act(1, l, now(), 1, ''{}'') FROM centile_store.board_lanes l WHERE l.board_id = 1 AND l.lane = 0;';
