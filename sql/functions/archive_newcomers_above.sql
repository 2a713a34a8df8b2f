-- Players of a closed period who would rank above a newcomer with this score; no row without an archive.
CREATE OR REPLACE FUNCTION centile_store.archive_newcomers_above(p_period_id bigint, p_score bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE ROWS 1
AS $$
    -- The least bigint has no negative: where smaller is better, it is better than any score there can be.
    SELECT CASE WHEN a.score_order = 'asc' AND p_score = -9223372036854775808 THEN 0 ELSE (
        SELECT c.players
        FROM centile_store.archive_above(p_period_id, ARRAY[centile.rank_key(p_score, a.score_order)], a.ties <> 'shared') c) END
    FROM centile_store.archive_of(p_period_id) a
$$;

COMMENT ON FUNCTION centile_store.archive_newcomers_above(bigint, bigint) IS
'Players of a closed period who would rank above a newcomer with a score. Example: SELECT centile_store.archive_newcomers_above(2, 100);';
