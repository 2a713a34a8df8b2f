-- Every answer about a ranking contains these values. The row also proves that the ranking is still
-- the current one of the period that the caller means. After a restore the ids may be another
-- board's, so the board is checked too. A ranking without bucket rows is read at the last batches.
CREATE OR REPLACE FUNCTION centile_store.ranking_state(p_board_id integer, p_period_id bigint, p_ranking_id bigint, p_from timestamptz, p_until timestamptz)
RETURNS TABLE (epoch text, batches bigint[], players bigint, revision bigint)
LANGUAGE sql STABLE
AS $$
    SELECT centile.epoch(),
           CASE WHEN g.has_bucket_rows THEN centile_store.applied_batches(g.board_id, g.lanes) ELSE centile_store.lane_batches(g.board_id, g.lanes) END,
           centile_store.player_count(g.id),
           (SELECT v.revision FROM centile_store.profile_revision v)
    FROM centile_store.current_rankings c
    JOIN centile_store.rankings g ON g.id = c.id
    WHERE g.id = p_ranking_id AND g.period_id = p_period_id AND g.board_id = p_board_id
      AND (p_from IS NULL OR p_from <= statement_timestamp()) AND (p_until IS NULL OR statement_timestamp() < p_until)
$$;

COMMENT ON FUNCTION centile_store.ranking_state(integer, bigint, bigint, timestamptz, timestamptz) IS
'Version and players of a ranking; no row if it is no longer current. Example: SELECT * FROM centile_store.ranking_state(1, 1, 1, NULL, NULL);';
