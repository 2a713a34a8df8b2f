-- The lines of a load that cannot be taken, as they stand in the file, with the reason.
CREATE FUNCTION centile_store.load_rejects() RETURNS TABLE (line bigint, outcome text, raw text)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    SELECT r.line, r.outcome, l.raw
    FROM pg_temp.load_refusal r JOIN pg_temp.load_line l ON l.line = r.line
    WHERE r.outcome <> 'repeated'
    ORDER BY r.line;
END
$$;

COMMENT ON FUNCTION centile_store.load_rejects() IS
'Lines of a load that cannot be taken. Example: SELECT centile_store.make_load_tables(), (SELECT count(*) FROM centile_store.load_rejects()) AS rejects;';
