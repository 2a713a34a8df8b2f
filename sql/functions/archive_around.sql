-- A player of a closed period with up to p_around players above and below.
CREATE OR REPLACE FUNCTION centile_store.archive_around(p_period_id bigint, p_user_id bigint, p_around integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.archive_of(p_period_id) a
    CROSS JOIN LATERAL centile_store.archive_players(p_period_id, ARRAY[p_user_id]) p
    CROSS JOIN LATERAL centile_store.archive_rows(a.archive_name, a.score_order, greatest(p.position - p_around, 1),
        (least(p_around, p.position - 1) + 1 + p_around)::integer) r
$$;

COMMENT ON FUNCTION centile_store.archive_around(bigint, bigint, integer) IS
'Rows of a closed period around a player. Example: SELECT position, rank, user_id, score FROM centile_store.archive_around(2, 1, 4);';
