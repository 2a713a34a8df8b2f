-- Whole rankings of boards of templates, in one snapshot. revision: the profile revision. Their players are
-- few, and adjacent in the primary key. A ranking that is no longer current, or whose board was deleted,
-- has no row. In plpgsql,
-- which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.small_rankings(p_ranking_ids bigint[])
RETURNS TABLE (ranking_id bigint, epoch text, read_at timestamptz, batches bigint[], revision bigint,
               user_ids bigint[], rank_keys bigint[], tie_keys bigint[])
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT g.id, centile.epoch(), statement_timestamp(), centile_store.lane_batches(g.board_id, g.lanes), (SELECT v.revision FROM centile_store.profile_revision v), e.*
    FROM unnest(p_ranking_ids) AS r (id)
    JOIN centile_store.rankings g ON g.id = r.id AND g.players_of <> g.board_id AND NOT g.has_bucket_rows
    JOIN centile_store.template_boards b ON b.id = g.players_of
    JOIN centile_store.periods q ON q.id = g.period_id AND q.ranking_id IS NOT NULL
    CROSS JOIN LATERAL (
        SELECT array_agg(p.user_id), array_agg(p.rank_keys[n.place]), array_agg(p.tie_keys[n.place])
        FROM centile_store.players p
        CROSS JOIN LATERAL (SELECT array_position(p.period_ids, g.period_id) AS place OFFSET 0) n
        WHERE p.board_id = g.players_of AND n.place IS NOT NULL) e;
END
$$;

COMMENT ON FUNCTION centile_store.small_rankings(bigint[]) IS
'Players and keys of rankings of a template''s boards. Example: SELECT user_ids FROM centile_store.small_rankings(''{1}'');';
