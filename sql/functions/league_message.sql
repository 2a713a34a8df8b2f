CREATE OR REPLACE FUNCTION centile_store.league_message(p_period centile_store.periods) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object(
        'name', l.name,
        'divisions', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'division', l.divisions[d.division], 'cohorts', d.cohorts, 'players', d.players, 'promoted', d.promoted, 'relegated', d.relegated) ORDER BY d.division), '[]')
            FROM (SELECT m.division, count(DISTINCT m.cohort_id) AS cohorts, count(*) AS players,
                         count(*) FILTER (WHERE m.division_after > m.division) AS promoted, count(*) FILTER (WHERE m.division_after < m.division) AS relegated
                  FROM centile_store.league_cohorts c JOIN centile_store.league_members m ON m.cohort_id = c.id
                  WHERE c.league_id = l.id AND c.period_id = p_period.id GROUP BY m.division) d),
        'moves', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'user_id', u.external_id, 'rank', m.rank, 'from', l.divisions[m.division], 'to', l.divisions[m.division_after]) ORDER BY m.division DESC, m.cohort_id, m.rank, u.id), '[]')
            FROM (SELECT m.* FROM centile_store.league_cohorts c JOIN centile_store.league_members m ON m.cohort_id = c.id
                  WHERE c.league_id = l.id AND c.period_id = p_period.id AND m.division_after <> m.division
                  ORDER BY m.division DESC, m.cohort_id, m.rank, m.user_id LIMIT 100) m
            JOIN centile_store.users u ON u.id = m.user_id))
    FROM centile_store.leagues l
    WHERE l.board_id = p_period.board_id AND l.period_id = p_period.id AND l.deleted_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.league_message(centile_store.periods) IS
'What the message of a closed period says about the league of the board, with the first 100 moves; NULL without a league. Example: SELECT centile_store.league_message(p) FROM centile_store.periods p WHERE p.id = 2;';
