CREATE OR REPLACE FUNCTION centile_store.shown_sources(p_sources jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('board', s.board, 'period', s.period, 'version', s.version) ORDER BY s.place), '[]')
        FROM jsonb_to_recordset(p_sources) AS s (place integer, board text, period text, version text));

COMMENT ON FUNCTION centile_store.shown_sources(jsonb) IS
'The sources of a combined ranking as answers name them. Example: SELECT centile_store.shown_sources(''[{"place": 1, "board": "main", "period": "week:2024-01-15", "version": "a"}]'');';
