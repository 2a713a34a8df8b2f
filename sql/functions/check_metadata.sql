-- As for a score over HTTP, but with spaces, and without the limit of levels.
CREATE OR REPLACE FUNCTION centile_store.check_metadata(p_metadata json) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF jsonb_typeof(p_metadata::jsonb) = 'object' AND octet_length(p_metadata::text) <= 1024 THEN
        RETURN;
    END IF;
    RAISE data_exception;
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION 'metadata must be a JSON object of at most 1024 bytes without U+0000' USING ERRCODE = 'CB422', DETAIL = 'metadata';
END
$$;

COMMENT ON FUNCTION centile_store.check_metadata(json) IS
'Checks the metadata of a submitted score. Example: SELECT centile_store.check_metadata(''{"character": "mage"}'');';
