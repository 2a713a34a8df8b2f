-- A member has a move of 1, 0 or -1. The lines: members up to promotion_rank move up and those from
-- relegation_rank on move down, unless ties decide otherwise. In plpgsql, which keeps its plan.
CREATE OR REPLACE FUNCTION centile_store.cohort_state(p_cohort_id bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN (SELECT jsonb_build_object(
        'cohort_id', c.id, 'division', l.divisions[c.division],
        'promotion_rank', CASE WHEN c.division < cardinality(l.divisions) AND l.promote > 0 THEN l.promote END,
        'relegation_rank', (SELECT CASE WHEN c.division > 1 AND f.rank <= r.ranked THEN f.rank END
                            FROM (SELECT 1 + greatest(r.ranked - l.relegate, CASE WHEN c.division < cardinality(l.divisions) THEN l.promote ELSE 0 END) AS rank) f),
        'rows', r.rows)
    FROM centile_store.league_cohorts c
    JOIN centile_store.leagues l ON l.id = c.league_id
    CROSS JOIN LATERAL (
        SELECT max(r.ranked) AS ranked,
               jsonb_agg(jsonb_build_object('rank', r.rank, 'user_id', u.external_id, 'name', u.name, 'avatar_url', u.avatar, 'score', r.score, 'move', r.division_after - r.division,
                                            'key', CASE WHEN r.rank_key IS NOT NULL THEN jsonb_build_array(r.rank_key, r.tie_key, r.user_id) END)
                         ORDER BY r.rank, u.id) AS rows
        FROM centile_store.cohort_rows r JOIN centile_store.users u ON u.id = r.user_id WHERE r.cohort_id = c.id) r
    WHERE c.id = p_cohort_id);
END
$$;

COMMENT ON FUNCTION centile_store.cohort_state(bigint) IS
'A cohort of a league with its members. Example: SELECT jsonb_array_length(centile_store.cohort_state(1) -> ''rows'') AS members;';
