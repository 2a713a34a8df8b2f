-- Changes all or nothing. p_boards: the boards of a limited key; see centile_store.check_editable.
-- The audit log records that such a key has changed a player's friends, without their ids.
CREATE OR REPLACE FUNCTION centile.change_friends(
    p_user text, p_change text, p_friends text[], p_actor text DEFAULT session_user, p_boards text[] DEFAULT '{}',
    OUT added integer, OUT removed integer, OUT friends integer)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_is_new  boolean := false;
    v_user    centile_store.users;
    v_ids     bigint[];
    v_results text[] := '{}';
BEGIN
    IF p_change IS NULL OR p_change NOT IN ('add', 'remove', 'replace') THEN
        RAISE EXCEPTION 'must be add, remove or replace' USING ERRCODE = 'CB422', DETAIL = 'change';
    ELSIF p_change <> 'remove' THEN
        v_is_new := NOT EXISTS (SELECT FROM centile_store.users u WHERE u.external_id = p_user);
        -- One call, which inserts new players in the order of their ids: two of them may befriend each other.
        PERFORM centile.ensure_users(p_user || p_friends);
    END IF;
    SELECT u.* INTO v_user FROM centile_store.users u WHERE u.external_id = p_user FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM centile_store.user_named(p_user);
        RAISE EXCEPTION 'user % has just been erased; retry', quote_literal(p_user) USING ERRCODE = 'CB001', DETAIL = 'concurrent_change';
    END IF;
    PERFORM centile_store.check_editable(v_user, p_boards);

    v_ids := ARRAY(SELECT u.id FROM centile_store.users u WHERE u.external_id = ANY (p_friends));
    removed := 0;
    IF p_change = 'remove' THEN
        DELETE FROM centile_store.friends e WHERE e.user_id = v_user.id AND e.friend_id = ANY (v_ids);
        GET DIAGNOSTICS removed = ROW_COUNT;
    ELSIF p_change = 'replace' THEN
        DELETE FROM centile_store.friends e
        WHERE e.user_id = v_user.id AND NOT EXISTS (SELECT FROM unnest(v_ids) AS n (id) WHERE n.id = e.friend_id);
        GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
    IF p_change <> 'remove' THEN
        v_results := coalesce(centile_store.add_friends(array_fill(p_user, ARRAY[cardinality(p_friends)]), p_friends), '{}');
    END IF;
    added := cardinality(array_positions(v_results, 'added'));
    SELECT count(*) INTO friends FROM centile_store.friends e WHERE e.user_id = v_user.id;
    IF 'self' = ANY (v_results) THEN
        RAISE EXCEPTION 'a player cannot be their own friend' USING ERRCODE = 'CB422', DETAIL = 'user_ids';
    ELSIF 'erased' = ANY (v_results) THEN
        RAISE EXCEPTION 'user % was erased', quote_literal(p_friends[array_position(v_results, 'erased')])
            USING ERRCODE = 'CB409', DETAIL = 'user_erased';
    ELSIF 'missing' = ANY (v_results) THEN
        RAISE EXCEPTION 'user % has just been erased; retry', quote_literal(p_friends[array_position(v_results, 'missing')])
            USING ERRCODE = 'CB001', DETAIL = 'concurrent_change';
    ELSIF 'full' = ANY (v_results) THEN
        RAISE EXCEPTION 'user % would have % friends; at most 5000 are allowed',
            quote_literal(p_user), friends + cardinality(array_positions(v_results, 'full'))
            USING ERRCODE = 'CB409', DETAIL = 'too_many_friends';
    END IF;
    IF p_boards <> '{}' AND NOT v_is_new AND added + removed > 0 THEN
        PERFORM centile_store.note_act(p_actor, 'change_user', NULL, '{}', '{"fields": ["friends"]}', NULL, v_user.id);
    END IF;
END
$$;

COMMENT ON FUNCTION centile.change_friends(text, text, text[], text, text[]) IS
'Adds, removes or replaces friends of a player and returns how many were added and removed, and how many the player has now. Example: SELECT * FROM centile.change_friends(''ann'', ''replace'', ''{bob,dan}'');';
