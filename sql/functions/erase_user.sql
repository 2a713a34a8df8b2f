-- Forgets who a player was: id, name, avatar and metadata are replaced, here and wherever tops and events keep them. Scores
-- stay, under an id that says nothing. Archives and the ledger hold internal ids only. Whoever comes with the old id from now
-- on is somebody else. Doing it twice does it once. Gives the new id, and the closed periods whose tops named the player.
CREATE FUNCTION centile.erase_user(p_user text, p_actor text DEFAULT session_user, OUT user_id text, OUT period_ids bigint[])
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    v_revision bigint;
    v_user     centile_store.users;
BEGIN
    PERFORM centile_store.user_named(p_user);
    -- One of the same lane, on every board that there is or will be: whoever changes the player's scores holds that lane, under
    -- whichever id. It takes some 65,536 tries, which is half a second.
    LOOP
        user_id := 'erased-' || gen_random_uuid();
        EXIT WHEN centile.lane_hash(user_id) = centile.lane_hash(p_user);
    END LOOP;
    -- Before anything is looked at: a top that is being frozen has the name or waits for its end (centile_store.finish_close).
    UPDATE centile_store.profile_revision SET revision = revision + 1 RETURNING revision INTO v_revision;
    SELECT * INTO STRICT v_user FROM centile_store.users u WHERE u.id = centile_store.user_named(p_user) FOR UPDATE;
    IF v_user.erased_at IS NOT NULL THEN
        user_id := v_user.external_id;
        period_ids := ARRAY(SELECT p.id FROM centile_store.periods p WHERE centile_store.names_player(p.frozen_top, v_user.id) ORDER BY p.id);
        RETURN;
    END IF;
    UPDATE centile_store.users u
    SET external_id = user_id, name = '(erased)', avatar = NULL, metadata = '{}', profile_revision = v_revision, erased_at = clock_timestamp()
    WHERE u.id = v_user.id;
    WITH renamed AS (
        UPDATE centile_store.periods p
        SET frozen_top = centile_store.renamed_in_top(p.frozen_top, v_user.id, user_id, '(erased)'), archive_revision = p.archive_revision + 1
        WHERE centile_store.names_player(p.frozen_top, v_user.id)
        RETURNING p.id)
    SELECT coalesce(array_agg(r.id ORDER BY r.id), '{}') INTO period_ids FROM renamed r;
    -- Delivered ones, too: they can be sent again.
    UPDATE centile_store.outbox o
    SET payload = jsonb_set(o.payload, '{top}', (
        SELECT jsonb_agg(CASE WHEN r.row ->> 'user_id' = p_user THEN r.row || jsonb_build_object('user_id', user_id, 'user_name', '(erased)') ELSE r.row END ORDER BY r.place)
        FROM jsonb_array_elements(o.payload -> 'top') WITH ORDINALITY AS r (row, place)))
    WHERE o.payload -> 'top' @> jsonb_build_array(jsonb_build_object('user_id', p_user));
    PERFORM centile_store.note_act(p_actor, 'erase', NULL, '{"erased": false}', '{"erased": true}', NULL, v_user.id);
END
$$;

COMMENT ON FUNCTION centile.erase_user(text, text) IS
'Forgets who a player was, and keeps the scores. Example: SELECT user_id LIKE ''erased-%'' AS is_erased, cardinality(period_ids) AS tops FROM centile.erase_user(''ann'');';
