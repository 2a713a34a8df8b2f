CREATE OR REPLACE FUNCTION centile_store.archive_around(p_period_id bigint, p_user_id bigint, p_around integer)
RETURNS SETOF centile_store.ranking_row
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.archive_players(p_period_id, ARRAY[p_user_id]) p
    CROSS JOIN LATERAL centile_store.archive_rows(p_period_id, greatest(p.position - p_around, 1),
        (least(p_around, p.position - 1) + 1 + p_around)::integer) r
$$;

COMMENT ON FUNCTION centile_store.archive_around(bigint, bigint, integer) IS
'A player of a closed period with up to p_around players above and below. Example: SELECT position, rank, user_id, score FROM centile_store.archive_around(4, 1, 4);';
