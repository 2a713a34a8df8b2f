-- NULL leaves a field as it is. An avatar of NULL is removed if p_set_avatar is true. A p_reading
-- of 'default' removes the user's own setting. p_boards: the boards of a limited key; see
-- centile_store.check_editable.
--
-- The audit log records the names of changed fields only: an erasure would not remove their values.
-- If attributes change, centile_store.attribute_moves lists the user until
-- centile_store.move_player has moved the user on every board with segments. The service and
-- `centile maintain` call it.
CREATE OR REPLACE FUNCTION centile.put_user(p_user text, p_name text DEFAULT NULL, p_avatar text DEFAULT NULL, p_set_avatar boolean DEFAULT false,
    p_metadata jsonb DEFAULT NULL, p_actor text DEFAULT session_user, p_boards text[] DEFAULT '{}', p_attributes jsonb DEFAULT NULL,
    p_reading text DEFAULT NULL, OUT made boolean)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_revision bigint;
    v_user     centile_store.users;
    v_were     jsonb;
    v_are      jsonb;
    v_changed  text[];
BEGIN
    LOOP
        made := centile.ensure_users(ARRAY[p_user]) = 1;
        SELECT * INTO v_user FROM centile_store.users u WHERE u.external_id = p_user;
        PERFORM centile_store.check_editable(v_user, p_boards);
        -- Runs before the lock on profile_revision, for which every change of a profile waits.
        PERFORM centile_store.check_attributes(p_attributes, p_boards) WHERE p_attributes IS NOT NULL;
        UPDATE centile_store.profile_revision SET revision = revision + 1 RETURNING revision INTO v_revision;
        SELECT u.attributes INTO v_were FROM centile_store.users u WHERE u.id = v_user.id;
        UPDATE centile_store.users u
        SET name = coalesce(p_name, u.name), avatar = CASE WHEN p_set_avatar THEN p_avatar ELSE u.avatar END,
            metadata = coalesce(p_metadata, u.metadata), reading = nullif(coalesce(p_reading, u.reading), 'default'),
            attributes = jsonb_strip_nulls(u.attributes || coalesce(p_attributes, '{}')), profile_revision = v_revision
        WHERE u.external_id = p_user AND u.erased_at IS NULL
        RETURNING u.attributes INTO v_are;
        -- No row: an erasure has just replaced this id, which is free now.
        EXIT WHEN FOUND;
    END LOOP;
    IF v_are <> v_were THEN
        INSERT INTO centile_store.attribute_moves (user_id, number) VALUES (v_user.id, v_revision)
        ON CONFLICT ON CONSTRAINT attribute_moves_pkey DO UPDATE SET number = excluded.number, changed_at = clock_timestamp();
    END IF;
    v_changed := array_remove(ARRAY[
        CASE WHEN p_name <> v_user.name THEN 'name' END,
        CASE WHEN p_set_avatar AND p_avatar IS DISTINCT FROM v_user.avatar THEN 'avatar' END,
        CASE WHEN p_metadata <> v_user.metadata THEN 'metadata' END,
        CASE WHEN v_are <> v_were THEN 'attributes' END,
        CASE WHEN p_reading <> coalesce(v_user.reading, 'default') THEN 'reading' END], NULL);
    IF p_boards <> '{}' AND NOT made AND v_changed <> '{}' THEN
        PERFORM centile_store.note_act(p_actor, 'change_user', NULL, '{}', jsonb_build_object('fields', v_changed), NULL, v_user.id);
    END IF;
END
$$;

COMMENT ON FUNCTION centile.put_user(text, text, text, boolean, jsonb, text, text[], jsonb, text) IS
'Sets a user''s name, avatar, metadata, attributes (null removes one) and readers (public, key or default), and returns whether the user is new. If the attributes change, the service (within seconds) or centile maintain moves the user to the new segments. Example: SELECT centile.put_user(''ann'', ''Ann'', p_metadata => ''{"team": "red"}'');';
