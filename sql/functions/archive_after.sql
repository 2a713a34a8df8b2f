-- The page after a key that ended an earlier page.
CREATE OR REPLACE FUNCTION centile_store.archive_after(p_period_id bigint, p_rank_key bigint, p_tie_key bigint, p_internal_id bigint, p_limit integer)
RETURNS SETOF centile_store.ranking_row
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.archive_place(p_period_id, p_rank_key, p_tie_key, p_internal_id) AS p (place)
    CROSS JOIN LATERAL centile_store.archive_rows(p_period_id, p.place + 1, p_limit) r
$$;

COMMENT ON FUNCTION centile_store.archive_after(bigint, bigint, bigint, bigint, integer) IS
'Rows of a closed period below a key. Example: SELECT position, rank, user_id, score FROM centile_store.archive_after(4, 100, 0, 5, 10);';
