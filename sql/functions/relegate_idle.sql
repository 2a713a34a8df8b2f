-- Players without a score in the current period, in any but the lowest division. Repeatable: division
-- is that before the period.
CREATE OR REPLACE FUNCTION centile_store.relegate_idle(p_league centile_store.leagues) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    WITH range AS MATERIALIZED (
        SELECT coalesce(min(c.id), 0) AS first, coalesce(max(c.id), 0) AS last FROM centile_store.league_cohorts c WHERE c.league_id = p_league.id AND c.period_id = p_league.period_id
    ), idle AS (
        UPDATE centile_store.league_players p
        SET division = x.division, band = CASE p.period_id WHEN p_league.period_id THEN p.band WHEN p_league.closed_id THEN p.next_band ELSE 0 END,
            period_id = p_league.period_id, next_division = x.division - 1, next_band = 0
        FROM (SELECT o.user_id, CASE WHEN o.period_id = p_league.period_id THEN o.division ELSE o.next_division END AS division
              FROM centile_store.league_players o
              LEFT JOIN centile_store.league_members m ON m.user_id = o.user_id AND m.cohort_id BETWEEN (SELECT r.first FROM range r) AND (SELECT r.last FROM range r) AND m.league_id = p_league.id AND m.period_id = p_league.period_id
              WHERE o.league_id = p_league.id AND m.user_id IS NULL) x
        WHERE p.league_id = p_league.id AND p.user_id = x.user_id AND x.division > 1
        RETURNING p.user_id, p.division, p.next_division)
    INSERT INTO centile_store.league_members (league_id, user_id, period_id, division, division_after)
    SELECT p_league.id, i.user_id, p_league.period_id, i.division, i.next_division FROM idle i
    ON CONFLICT ON CONSTRAINT league_members_pkey DO NOTHING
$$;

COMMENT ON FUNCTION centile_store.relegate_idle(centile_store.leagues) IS
'Moves players without a score in the current period of a league down one division. Example: SELECT centile_store.relegate_idle(l) FROM centile_store.leagues l WHERE l.name = ''months'';';
