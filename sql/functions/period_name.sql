-- The label follows a colon, and the segment an at sign.
CREATE OR REPLACE FUNCTION centile_store.period_name(p_kind text, p_label text, p_segment text DEFAULT '') RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE p_kind WHEN 'all_time' THEN p_kind ELSE p_kind || ':' || p_label END || CASE p_segment WHEN '' THEN '' ELSE '@' || p_segment END;

COMMENT ON FUNCTION centile_store.period_name(text, text, text) IS
'The name of a period as a selector. Example: SELECT centile_store.period_name(''week'', ''2024-01-15'', ''country:DE'');';
