CREATE OR REPLACE FUNCTION centile_store.league_overview(p_board_id integer) RETURNS jsonb
LANGUAGE sql STABLE
SET timezone = 'UTC'
AS $$
    SELECT to_jsonb(v) - '{league_id,board_id,period_id}'::text[] || jsonb_build_object(
        'current_period', (SELECT p.kind || ':' || p.label FROM centile_store.periods p WHERE p.id = v.period_id),
        'waiting', (SELECT count(*) FROM centile_store.league_members m WHERE m.league_id = v.league_id AND m.division IS NULL),
        'cohorts', (SELECT jsonb_agg(jsonb_build_object('division', d.name, 'cohorts', coalesce(c.cohorts, 0), 'players', coalesce(c.players, 0)) ORDER BY d.place)
                    FROM unnest(v.divisions) WITH ORDINALITY AS d (name, place)
                    LEFT JOIN (SELECT c.division, count(*) AS cohorts, sum(c.members) AS players FROM centile_store.league_cohorts c
                               WHERE c.league_id = v.league_id AND c.period_id = v.period_id GROUP BY c.division) c ON c.division = d.place))
    FROM centile.leagues v WHERE v.board_id = p_board_id
$$;

COMMENT ON FUNCTION centile_store.league_overview(integer) IS
'The rules of a board''s league, with cohorts and players of each division in the current period; NULL without a league. Example: SELECT centile_store.league_overview(3) -> ''waiting'' AS waiting;';
