-- Replaces id, name, avatar and metadata everywhere, and removes the attributes. Scores stay under a
-- random id, without their metadata; archives, segments and the ledger hold only internal ids.
--
-- A call with the new id processes all tops again. The old id is not stored, so a caller that lost
-- the response cannot repeat the call with it. p_request, an id of the request, leads to the same
-- answer for seven days. A digest of both ids proves that the request is about the same player.
--
-- With p_in_steps only the player changes. centile_store.erase_from_tops then removes friends and
-- the metadata of scores, and changes tops, some per transaction; centile_store.erasures lists
-- interrupted erasures. The service and `centile maintain` remove the player from segments.
CREATE OR REPLACE FUNCTION centile.erase_user(
    p_user text, p_actor text DEFAULT session_user, p_request text DEFAULT NULL, p_in_steps boolean DEFAULT false,
    OUT user_id text, OUT period_ids bigint[])
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    v_revision bigint;
    v_erasure  centile_store.erasures;
    v_user     centile_store.users;
    v_lane     bytea := substr(sha256(convert_to(p_user, 'UTF8')), 1, 2);
    v_prefix   text := 'erased-' || gen_random_uuid() || '-';
    v_try      integer := 0;
    v_digest   bytea := sha256(convert_to(jsonb_build_array(p_request, p_user)::text, 'UTF8'));
BEGIN
    -- Requests of the same id wait for each other.
    PERFORM pg_advisory_xact_lock(hashtextextended('erasure ' || p_request, 0)) WHERE p_request IS NOT NULL;
    SELECT * INTO v_erasure FROM centile_store.erasures e WHERE e.request_id = p_request;
    IF FOUND THEN
        SELECT u.* INTO STRICT v_user FROM centile_store.users u WHERE u.id = v_erasure.user_id;
        -- A player who has taken the old id since is a different player.
        IF v_digest <> v_erasure.request_digest AND p_user <> v_user.external_id THEN
            RAISE EXCEPTION 'a request with this id has erased another player' USING ERRCODE = 'CB409', DETAIL = 'idempotency_key_reused';
        END IF;
    ELSE
        PERFORM centile_store.user_named(p_user);
        -- The new id has the same lane (centile.lane_hash) on every board: a session that changes the
        -- player's scores holds that lane, under either id. Finding it takes about 65,536 digests.
        LOOP
            user_id := v_prefix || v_try;
            EXIT WHEN substr(sha256(convert_to(user_id, 'UTF8')), 1, 2) = v_lane;
            v_try := v_try + 1;
        END LOOP;
        -- First, so that centile_store.finish_close already has the new name, or waits for this transaction.
        UPDATE centile_store.profile_revision SET revision = revision + 1 RETURNING revision INTO v_revision;
        SELECT * INTO STRICT v_user FROM centile_store.users u WHERE u.id = centile_store.user_named(p_user) FOR UPDATE;
    END IF;
    IF v_user.erased_at IS NULL THEN
        -- Messages hold only the old id, so list the players before another player can take it.
        PERFORM centile_store.list_named_players();
        UPDATE centile_store.users u
        SET external_id = user_id, name = '(erased)', avatar = NULL, metadata = '{}', attributes = '{}', reading = NULL, profile_revision = v_revision, erased_at = clock_timestamp()
        WHERE u.id = v_user.id;
        IF v_user.attributes <> '{}' THEN
            INSERT INTO centile_store.attribute_moves (user_id, number) VALUES (v_user.id, v_revision)
            ON CONFLICT ON CONSTRAINT attribute_moves_pkey DO UPDATE SET number = excluded.number, changed_at = clock_timestamp();
        END IF;
        PERFORM centile_store.forget_submissions(p_user);
        -- Failures that Centile 0.2 stored name players by their ids.
        UPDATE centile_store.combinations SET failure = 'a score is out of range' WHERE position('player ' || quote_literal(p_user) IN failure) > 0;
        PERFORM centile_store.note_act(p_actor, 'erase', NULL, '{"erased": false}', '{"erased": true}', NULL, v_user.id);
        INSERT INTO centile_store.erasures (user_id, request_id, request_digest, old_id, last_message_id)
        SELECT v_user.id, p_request, CASE WHEN p_request IS NOT NULL THEN v_digest END, p_user, coalesce(max(o.id), 0) FROM centile_store.outbox o;
    ELSE
        user_id := v_user.external_id;
        INSERT INTO centile_store.erasures AS e (user_id, request_id, request_digest)
        SELECT v_user.id, p_request, CASE WHEN p_request IS NOT NULL THEN v_digest END
        ON CONFLICT ON CONSTRAINT erasures_pkey DO UPDATE
        SET next_period_id = 0, next_board_id = 0, last_event_at = '-infinity', last_ledger_id = 0, done_at = NULL, request_id = coalesce(e.request_id, excluded.request_id),
            request_digest = coalesce(e.request_digest, excluded.request_digest);
    END IF;
    period_ids := '{}';
    IF NOT p_in_steps THEN
        SELECT t.period_ids INTO period_ids FROM centile_store.erase_from_tops(user_id) t;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.erase_user(text, text, text, boolean) IS
'Erases a player''s identity and friends, keeps the scores, and returns the new id and the closed periods whose tops named the player. Example: SELECT user_id LIKE ''erased-%'' AS is_erased, cardinality(period_ids) AS tops FROM centile.erase_user(''ann'');';
