-- On the worker that has the lane, in a transaction of its own.
CREATE OR REPLACE FUNCTION centile_store.repair_players(
    p_ranking_id bigint, p_lane smallint, p_batch bigint, p_up_to bigint,
    p_user_ids bigint[], p_rank_keys bigint[], p_tie_keys bigint[], p_only_zeros boolean[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_lanes.on_lane(p_lane, p_ranking_id, format(
        'SELECT ARRAY[1] FROM (SELECT centile_store.repair_players(%s, %s::smallint, %s, %L, %L, %L, %L, %L) OFFSET 0) r',
        p_ranking_id, p_lane, p_batch, p_up_to, p_user_ids, p_rank_keys, p_tie_keys, p_only_zeros));
END
$$;

COMMENT ON FUNCTION centile_store.repair_players(bigint, smallint, bigint, bigint, bigint[], bigint[], bigint[], boolean[]) IS
'Sets standings of players of a lane to those of the ledger.';
