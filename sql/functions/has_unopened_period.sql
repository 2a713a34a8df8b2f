-- Whether a board lacks a period that holds p_at: then the next writer has to open it. Seasons are made ahead.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE OR REPLACE FUNCTION centile_store.has_unopened_period(p_board centile_store.boards, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT count(*) FROM centile_store.periods_at(p_board.id, p_board.periods, p_at) p WHERE p.kind <> 'season')
        < cardinality(p_board.periods);
END
$$;

COMMENT ON FUNCTION centile_store.has_unopened_period(centile_store.boards, timestamptz) IS
'Whether a period that holds this time is not open yet. Example: SELECT centile_store.has_unopened_period(b, ''2024-01-15 12:00Z'') FROM centile_store.boards b WHERE b.slug = ''main'';';
