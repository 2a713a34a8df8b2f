-- Makes or changes a user. p_set_avatar tells an avatar to be removed from one to be left alone.
CREATE FUNCTION centile.put_user(p_user text, p_name text DEFAULT NULL, p_avatar text DEFAULT NULL, p_set_avatar boolean DEFAULT false,
    p_metadata jsonb DEFAULT NULL, OUT made boolean)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    LOOP
        made := centile.ensure_users(ARRAY[p_user]) = 1;
        WITH revision AS (
            UPDATE centile_store.profile_revision SET revision = revision + 1 RETURNING revision)
        UPDATE centile_store.users u
        SET name = coalesce(p_name, u.name), avatar = CASE WHEN p_set_avatar THEN p_avatar ELSE u.avatar END,
            metadata = coalesce(p_metadata, u.metadata), profile_revision = r.revision
        FROM revision r
        WHERE u.external_id = p_user;
        -- Whoever was there was being erased: from now on nobody has the id.
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile.put_user(text, text, text, boolean, jsonb) IS
'Sets a user''s name, avatar and metadata, and says whether the user is new. Example: SELECT centile.put_user(''ann'', ''Ann'', p_metadata => ''{"team": "red"}'');';
