CREATE OR REPLACE FUNCTION centile_store.ranking_of(p_board_id integer, p_period_id bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT g.id FROM centile_store.rankings g WHERE g.players_of = p_board_id AND g.period_id = p_period_id AND g.players_of <> g.board_id AND g.released_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.ranking_of(integer, bigint) IS
'The ranking of a template''s board in a period of the template; NULL before its first entry. Example: SELECT centile_store.ranking_of(1, 1);';
