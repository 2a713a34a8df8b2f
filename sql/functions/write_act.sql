-- The last step of an act on a player: writes the player's entries, then advances the lane. The
-- caller holds the structure lock and the lane.
CREATE OR REPLACE FUNCTION centile_store.write_act(
    p_lane centile_store.board_lanes, p_at timestamptz, p_user_id bigint, p_changes centile_store.entry_change[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.write_entries(p_lane.lane, (SELECT b.score_order FROM centile_store.boards b WHERE b.id = p_lane.board_id),
        array_agg(c.ranking_id), array_agg(c.user_id), array_agg(c.was_rank_key), NULL, array_agg(c.rank_key), array_agg(c.tie_key), array_agg(c.only_zeros))
    FROM unnest(p_changes) c HAVING count(*) > 0;
    -- The first element names the player, even if no entry changes.
    PERFORM centile_store.advance_lane(p_lane, p_at,
        NULL::bigint || array_agg(c.ranking_id), p_user_id || array_agg(c.user_id),
        NULL::bigint || array_agg(c.was_rank_key), NULL::bigint || array_agg(c.was_tie_key), NULL::bigint || array_agg(c.rank_key), NULL::bigint || array_agg(c.tie_key))
    FROM unnest(p_changes) c;
END
$$;

COMMENT ON FUNCTION centile_store.write_act(centile_store.board_lanes, timestamptz, bigint, centile_store.entry_change[]) IS
'Writes the entries that an act on a player changes, as a batch of the lane. Example: SELECT centile_store.write_act(l, now(), 1, ''{}'') FROM centile_store.board_lanes l WHERE l.board_id = 1 AND l.lane = 0;';
