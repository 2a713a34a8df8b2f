-- Before an act that may give a board of a template its first entry in a period.
CREATE OR REPLACE FUNCTION centile_store.require_rankings(p_board centile_store.boards, p_owner integer, p_at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_board.is_template THEN
        PERFORM centile_store.add_rankings(p_owner, array_agg(p.period_id), array_agg(p_board.id))
        FROM centile_store.periods_at(p_owner, p_board.periods, p_at) p WHERE p.ranking_id IS NOT NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.require_rankings(centile_store.boards, integer, timestamptz) IS
'Creates the rankings of a template''s board in the open periods that hold a time, where they are missing. Example: SELECT centile_store.require_rankings(b, b.id, now()) FROM centile_store.boards b WHERE b.slug = ''main'';';
