-- The players of sources that build_combination has resolved. Leaves out players who are banned at
-- the time of the refresh from a board of the source. Sums of bigint are exact; products are only with p_numeric, which
-- takes longer.
CREATE OR REPLACE FUNCTION centile_store.combined_entries_query(p_board_id integer, p_sources jsonb, p_numeric boolean) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_rules   record;
    v_entries text;
BEGIN
    SELECT c.join_rule, c.aggregate INTO STRICT v_rules FROM centile_store.combinations c WHERE c.board_id = p_board_id;
    SELECT string_agg(format(
               'SELECT e.user_id, e.score%s%s AS score, e.reached_at FROM %s%s',
               CASE WHEN p_numeric THEN '::numeric' END,
               CASE WHEN s.weight <> 1 THEN format(' * (%s)', s.weight) END,
               CASE WHEN s.archive IS NOT NULL THEN format('centile_archive.%I e WHERE true', s.archive)
                    WHEN s.ranking_id IS NOT NULL THEN format('centile_store.leaderboard e WHERE e.ranking_id = %s', s.ranking_id)
                    -- A period without scores.
                    ELSE '(SELECT 0::bigint AS user_id, 0::bigint AS score, now() AS reached_at) e WHERE false' END,
               (SELECT format(' AND e.user_id <> ALL (%L::bigint[])', array_agg(x.user_id))
                FROM (SELECT DISTINCT p.user_id FROM centile_store.players p
                      WHERE p.banned AND p.board_id IN (SELECT centile_store.source_boards(s.board_id))) x
                HAVING count(*) > 0)), ' UNION ALL ' ORDER BY s.place)
    INTO v_entries
    FROM jsonb_to_recordset(p_sources) AS s (place integer, board_id integer, weight integer, archive text, ranking_id bigint);
    RETURN format('SELECT s.user_id, %s(s.score) AS score, max(s.reached_at) AS reached_at FROM (%s) s GROUP BY s.user_id%s',
        v_rules.aggregate, v_entries,
        CASE v_rules.join_rule WHEN 'intersection' THEN format(' HAVING count(*) = %s', jsonb_array_length(p_sources)) ELSE '' END);
END
$$;

COMMENT ON FUNCTION centile_store.combined_entries_query(integer, jsonb, boolean) IS
'Text of the query that computes the scores of a combined board from resolved sources. Example: SELECT centile_store.combined_entries_query(4, ''[{"place": 1, "board_id": 1, "weight": 1, "ranking_id": 1}]'', false) LIKE ''SELECT s.user_id%'' AS is_query;';
