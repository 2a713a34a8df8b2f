CREATE OR REPLACE FUNCTION centile_store.league_named(p_name text) RETURNS centile_store.leagues
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_league centile_store.leagues;
BEGIN
    SELECT * INTO v_league FROM centile_store.leagues l WHERE l.name = p_name AND l.deleted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no league %', quote_literal(p_name) USING ERRCODE = 'CB404', DETAIL = 'league', HINT = 'SELECT name FROM centile.leagues lists them.';
    END IF;
    RETURN v_league;
END
$$;

COMMENT ON FUNCTION centile_store.league_named(text) IS
'The row of a league; an error if it does not exist. Example: SELECT (centile_store.league_named(''months'')).size;';
