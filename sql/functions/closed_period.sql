CREATE OR REPLACE FUNCTION centile_store.closed_period(p_id bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN coalesce((SELECT c.period_id FROM centile_store.closed_row(p_id) c), p_id);

COMMENT ON FUNCTION centile_store.closed_period(bigint) IS
'The period of an archive: of a board''s results in a period of a template, or the period itself. Example: SELECT centile_store.closed_period(2);';
