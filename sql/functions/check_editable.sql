-- p_boards: the boards of a limited key; '{}' for all boards. Such a key may change users without
-- scores and users with scores on these boards.
CREATE OR REPLACE FUNCTION centile_store.check_editable(p_user_id bigint, p_boards text[]) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_user centile_store.users;
BEGIN
    SELECT * INTO v_user FROM centile_store.users u WHERE u.id = p_user_id;
    IF v_user.erased_at IS NOT NULL THEN
        RAISE EXCEPTION 'user % was erased', quote_literal(v_user.external_id) USING ERRCODE = 'CB409', DETAIL = 'user_erased';
    ELSIF p_boards <> '{}' AND NOT (
        SELECT coalesce(bool_or(b.slug = ANY (p_boards)), true) FROM centile_store.boards b
        WHERE EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = b.id AND t.user_id = v_user.id AND t.kind = 'score')) THEN
        RAISE EXCEPTION 'user % has scores on other boards than those of the key', quote_literal(v_user.external_id) USING ERRCODE = 'CB403', DETAIL = 'user_id';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_editable(bigint, text[]) IS
'Raises an error if a user was erased, or may not be changed with a key for some boards. Example: SELECT centile_store.check_editable(1, ''{main}'');';
