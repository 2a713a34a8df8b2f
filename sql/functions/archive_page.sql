-- A page of a closed period from a position.
CREATE OR REPLACE FUNCTION centile_store.archive_page(p_period_id bigint, p_from bigint, p_limit integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.archive_of(p_period_id) a
    CROSS JOIN LATERAL centile_store.archive_rows(a.archive_name, a.score_order, p_from, p_limit) r
$$;

COMMENT ON FUNCTION centile_store.archive_page(bigint, bigint, integer) IS
'Rows of a closed period from a position. Example: SELECT position, rank, user_id, score FROM centile_store.archive_page(2, 1, 10);';
