-- AT TIME ZONE also accepts abbreviations and POSIX rules, which mean something else.
CREATE OR REPLACE FUNCTION centile_store.check_time_zone(p_time_zone text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_time_zone IS NULL OR NOT (p_time_zone = 'UTC' OR p_time_zone ~ '^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)+$'
            AND EXISTS (SELECT FROM pg_timezone_names WHERE name = p_time_zone)) THEN
        RAISE EXCEPTION '% is not an IANA time zone', quote_nullable(p_time_zone)
            USING ERRCODE = 'CB422', DETAIL = 'time_zone', HINT = 'Names look like Europe/Berlin or UTC.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_time_zone(text) IS
'Raises an error unless the name is an IANA time zone. Example: SELECT centile_store.check_time_zone(''Europe/Berlin'');';
