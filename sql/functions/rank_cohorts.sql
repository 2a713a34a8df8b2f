-- Writes ranks, scores and moves of a league's players in a period, from its archive. While the
-- period is being closed, also the divisions that the players will have. Repeatable; nothing of it
-- counts until the period is closed. A refresh does not touch divisions: later periods are based on
-- them.
CREATE OR REPLACE FUNCTION centile_store.rank_cohorts(p_period_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET work_mem = '128MB'
SET enable_nestloop = off
AS $$
DECLARE
    v_period centile_store.periods;
    v_league centile_store.leagues;
    v_first  bigint;
    v_last   bigint;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    SELECT * INTO v_league FROM centile_store.leagues l
    WHERE l.board_id = v_period.board_id AND l.kind = v_period.kind AND l.deleted_at IS NULL AND v_period.segment = ''
      AND (v_period.state = 'closed' OR l.period_id = p_period_id)
    FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- The range of ids keeps the plan away from the members of other periods.
    SELECT min(c.id), max(c.id) INTO v_first, v_last FROM centile_store.league_cohorts c WHERE c.league_id = v_league.id AND c.period_id = p_period_id;
    EXECUTE format($query$
        WITH ranked AS (
            SELECT m.user_id, c.id AS cohort_id, c.division, a."position", a.score,
                   CASE WHEN a.rank IS NOT NULL THEN rank() OVER (PARTITION BY c.id ORDER BY a.rank) END AS rank,
                   count(*) OVER (PARTITION BY c.id, a.rank) AS tied, count(a.rank) OVER (PARTITION BY c.id) AS ranked,
                   count(a.rank) OVER (PARTITION BY c.division) AS in_division,
                   row_number() OVER (PARTITION BY c.division ORDER BY a."position" DESC NULLS LAST) - 1 AS better_than
            FROM centile_store.league_cohorts c
            JOIN centile_store.league_members m ON m.cohort_id = c.id AND m.cohort_id BETWEEN $4 AND $5
            LEFT JOIN centile_archive.%I a ON a.user_id = m.user_id
            WHERE c.league_id = ($1).id AND c.period_id = $2
        ), result AS MATERIALIZED (
            SELECT r.user_id, r.division, r.score, r.rank::integer, centile_store.league_move($1, r.division, r.rank, r.tied, r.ranked) AS division_after,
                   CASE WHEN ($1).fill = 'form' AND r.rank IS NOT NULL
                        THEN r.better_than * least(10, greatest(1, r.in_division / ($1).size)) / r.in_division ELSE 0 END::smallint AS band
            FROM ranked r
        ), written AS (
            UPDATE centile_store.league_members m SET score = r.score, rank = r.rank, division_after = r.division_after
            FROM result r
            WHERE m.league_id = ($1).id AND m.user_id = r.user_id AND m.period_id = $2 AND m.cohort_id BETWEEN $4 AND $5
              AND (m.score, m.rank, m.division_after) IS DISTINCT FROM (r.score, r.rank, r.division_after))
        INSERT INTO centile_store.league_players AS p (league_id, user_id, division, band, period_id, next_division, next_band)
        SELECT ($1).id, r.user_id, r.division, 0, $2, r.division_after, r.band FROM result r WHERE $3
        ON CONFLICT ON CONSTRAINT league_players_pkey DO UPDATE
        SET division = excluded.division, band = CASE p.period_id WHEN $2 THEN p.band WHEN ($1).closed_id THEN p.next_band ELSE 0 END,
            period_id = $2, next_division = excluded.next_division, next_band = excluded.next_band
        $query$, v_period.archive_name) USING v_league, p_period_id, v_period.state <> 'closed', v_first, v_last;
    IF v_period.state <> 'closed' AND v_league.idle = 'relegate' THEN
        PERFORM centile_store.relegate_idle(v_league);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.rank_cohorts(bigint) IS
'Writes the results of a league''s players in a period that is being closed or refreshed. Example: SELECT centile_store.rank_cohorts(2);';
