-- Rankings without bucket rows, one for each pair of a period and a board. In the order of the key, so
-- that two sessions that add the same ones do not deadlock. Skips those that a template's board has. In
-- plpgsql, which keeps its plan.
CREATE OR REPLACE FUNCTION centile_store.add_rankings(p_board_id integer, p_period_ids bigint[], p_players_of integer[]) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN QUERY
    -- removed_bucket: centile_store.remove_released has no rows to look for.
    INSERT INTO centile_store.rankings (board_id, period_id, players_of, lanes, has_bucket_rows, removed_bucket, buckets, low_rank_keys, low_tie_keys, low_user_keys)
    SELECT p_board_id, r.period_id, r.players_of, b.lanes, false, 100, '{100}', x.low, x.low, x.low
    FROM (SELECT DISTINCT u.period_id, u.players_of FROM unnest(p_period_ids, p_players_of) AS u (period_id, players_of)) r
    JOIN centile_store.boards b ON b.id = p_board_id
    CROSS JOIN (SELECT ARRAY[centile_store.key_min()] AS low) x
    ORDER BY r.period_id, r.players_of
    ON CONFLICT (period_id, players_of) WHERE players_of <> board_id AND released_at IS NULL DO NOTHING
    RETURNING id;
END
$$;

COMMENT ON FUNCTION centile_store.add_rankings(integer, bigint[], integer[]) IS
'Creates empty rankings without bucket rows, and returns their ids. Example: SELECT centile_store.add_rankings(1, ''{}'', ''{}'');';
