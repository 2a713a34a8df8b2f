-- The writer names an entry of a board of a template by the template's own ranking of the period.
-- The first entry of a board in a period creates its ranking.
CREATE OR REPLACE FUNCTION centile_store.board_entries(p_board_id integer, p_entries centile_store.logged_entries, p_boards integer[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_periods  bigint[];
    v_rankings bigint[];
BEGIN
    v_periods := ARRAY(
        SELECT r.period_id FROM unnest(p_entries.ranking_ids) WITH ORDINALITY AS e (id, place)
        JOIN centile_store.rankings r ON r.id = e.id ORDER BY e.place);
    FOR v_try IN 1 .. 2 LOOP
        v_rankings := ARRAY(
            SELECT g.id FROM unnest(v_periods, p_boards) WITH ORDINALITY AS e (period_id, board_id, place)
            LEFT JOIN centile_store.rankings g ON g.players_of = e.board_id AND g.period_id = e.period_id AND g.players_of <> g.board_id AND g.released_at IS NULL
            ORDER BY e.place);
        EXIT WHEN array_position(v_rankings, NULL) IS NULL;
        PERFORM centile_store.add_rankings(p_board_id, v_periods, p_boards);
    END LOOP;
    RETURN v_rankings;
END
$$;

COMMENT ON FUNCTION centile_store.board_entries(integer, centile_store.logged_entries, integer[]) IS
'The rankings of entries of a template''s boards. Example: SELECT centile_store.board_entries(1, (''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}''), ''{}'');';
