-- On the worker that has the lane, in a transaction of its own. Only the caller writes the ranking.
CREATE OR REPLACE FUNCTION centile_store.fill_rows(p_ranking_id bigint, p_lane smallint, p_limit integer DEFAULT 10000, OUT players bigint, OUT changes bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_values bigint[] := centile_lanes.on_lane(p_lane, p_ranking_id, format(
        'SELECT ARRAY[f.players, f.changes] FROM centile_store.fill_rows(%s, %s::smallint, %s) f', p_ranking_id, p_lane, p_limit));
BEGIN
    players := v_values[1];
    changes := v_values[2];
END
$$;

COMMENT ON FUNCTION centile_store.fill_rows(bigint, smallint, integer) IS
'Writes bucket rows of a lane of a new ranking, and returns the numbers of players added and of logged changes applied.';
