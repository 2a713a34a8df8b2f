-- Newest first. p_before: the end of the last period of the page before.
CREATE OR REPLACE FUNCTION centile_store.league_results(p_board_id integer, p_user text, p_before timestamptz, p_limit integer) RETURNS jsonb
LANGUAGE sql STABLE
SET timezone = 'UTC'
AS $$
    SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY h.ends_at DESC), '[]')
    FROM (SELECT p.kind || ':' || p.label AS period, p.ends_at, l.divisions[m.division] AS division, m.cohort_id, m.rank, m.score,
                 l.divisions[m.division_after] AS next_division
          FROM centile_store.leagues l
          JOIN centile_store.league_members m ON m.league_id = l.id AND m.user_id = centile_store.user_named(p_user)
          JOIN centile_store.periods p ON p.id = m.period_id AND p.state = 'closed' AND p.ends_at < coalesce(p_before, 'infinity')
          WHERE l.board_id = p_board_id AND l.deleted_at IS NULL AND m.division_after IS NOT NULL
          ORDER BY p.ends_at DESC LIMIT p_limit) h
$$;

COMMENT ON FUNCTION centile_store.league_results(integer, text, timestamptz, integer) IS
'Results of a player in closed periods of a board''s league. Example: SELECT jsonb_array_length(centile_store.league_results(3, ''eve'', NULL, 10)) AS results;';
