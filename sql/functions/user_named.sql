CREATE OR REPLACE FUNCTION centile_store.user_named(p_external_id text) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_user_id bigint;
BEGIN
    SELECT id INTO v_user_id FROM centile_store.users WHERE external_id = p_external_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no user %', quote_literal(p_external_id) USING ERRCODE = 'CB404', DETAIL = 'user';
    END IF;
    RETURN v_user_id;
END
$$;

COMMENT ON FUNCTION centile_store.user_named(text) IS
'The internal id of a user; an error if the user does not exist. Example: SELECT centile_store.user_named(''ann'');';
