-- Stores the SHA-256 of the secret. A client has at most two active keys, so that one can replace
-- the other. An empty list of boards means all boards. p_request_sha256 and p_request_salt belong to
-- a request that may be repeated.
CREATE OR REPLACE FUNCTION centile.create_key(
    p_id text, p_name text, p_role text, p_boards text[], p_expires_at timestamptz, p_secret_sha256 bytea,
    p_actor text DEFAULT session_user,
    p_request_sha256 bytea DEFAULT NULL, p_request_salt bytea DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
SET timezone = 'UTC'
AS $$
DECLARE
    v_created_at timestamptz;
    v_live       text[];
    v_unknown    text;
BEGIN
    SELECT min(slug) INTO v_unknown FROM unnest(p_boards) AS slug WHERE NOT EXISTS (SELECT FROM centile_store.board_names b WHERE b.slug = slug.slug);
    IF v_unknown IS NOT NULL THEN
        RAISE EXCEPTION 'no board %', quote_literal(v_unknown) USING ERRCODE = 'CB404', DETAIL = 'board';
    ELSIF cardinality(p_boards) <> (SELECT count(DISTINCT slug) FROM unnest(p_boards) AS slug) THEN
        RAISE EXCEPTION 'boards must name each board once' USING ERRCODE = 'CB422', DETAIL = 'boards';
    ELSIF p_role = 'admin' AND p_boards <> '{}' THEN
        RAISE EXCEPTION 'an admin key is for all boards' USING ERRCODE = 'CB422', DETAIL = 'boards';
    ELSIF p_expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'the time of expiry is in the past' USING ERRCODE = 'CB422', DETAIL = 'expires_at';
    END IF;
    -- Otherwise two concurrent calls would each count one key.
    PERFORM pg_advisory_xact_lock(hashtextextended('client ' || p_name, 0));
    -- Otherwise a request that repeats another one could be told that there are too many keys.
    IF EXISTS (SELECT FROM centile_store.api_keys k WHERE k.request_sha256 = p_request_sha256) THEN
        RAISE EXCEPTION 'the same request is being processed' USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    SELECT array_agg(k.id ORDER BY k.created_at) INTO v_live FROM centile_store.api_keys k
    WHERE k.name = p_name AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp());
    IF cardinality(v_live) >= 2 THEN
        RAISE EXCEPTION 'client % already has two active keys: % and %', quote_literal(p_name), v_live[1], v_live[2]
            USING ERRCODE = 'CB409', DETAIL = 'too_many_keys', HINT = 'Revoke one of them first.';
    END IF;
    INSERT INTO centile_store.api_keys (id, name, role, boards, expires_at, secret_sha256, request_sha256, request_salt)
    VALUES (p_id, p_name, p_role, p_boards, p_expires_at, p_secret_sha256, p_request_sha256, p_request_salt)
    RETURNING created_at INTO v_created_at;
    PERFORM centile_store.note_act(p_actor, 'create_key', NULL, NULL, jsonb_strip_nulls(jsonb_build_object(
        'name', p_name, 'role', p_role, 'boards', p_boards, 'expires_at', p_expires_at)), 'key ' || p_id);
    RETURN v_created_at;
END
$$;

COMMENT ON FUNCTION centile.create_key(text, text, text, text[], timestamptz, bytea, text, bytea, bytea) IS
'Stores an API key (ctl_ID_SECRET) with the SHA-256 of its secret. centile key create generates both. Example: SELECT centile.create_key(''00112233445566aa'', ''match server'', ''server'', ''{main}'', NULL, sha256(''64 random hexadecimal digits'')) IS NOT NULL AS is_made;';
