-- p_boards: the boards of a limited key; '{}' for all boards. Such a key may change users without
-- scores and users with scores on these boards. Uses the caller's row: the current one may already have
-- the new id of a user who is erased now, and nobody may learn which old id it replaces.
CREATE OR REPLACE FUNCTION centile_store.check_editable(p_user centile_store.users, p_boards text[]) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_user.erased_at IS NOT NULL THEN
        RAISE EXCEPTION 'user % was erased', quote_literal(p_user.external_id) USING ERRCODE = 'CB409', DETAIL = 'user_erased';
    ELSIF p_boards <> '{}' AND NOT (
        SELECT coalesce(bool_or(b.slug = ANY (p_boards)), true) FROM centile_store.boards b
        WHERE EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = b.id AND t.user_id = p_user.id AND t.kind = 'score')) THEN
        RAISE EXCEPTION 'user % has scores on other boards than those of the key', quote_literal(p_user.external_id) USING ERRCODE = 'CB403', DETAIL = 'user_id';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_editable(centile_store.users, text[]) IS
'Raises an error if a user was erased, or if a key that is limited to these boards may not change the user. Example: SELECT centile_store.check_editable(u, ''{main}'') FROM centile_store.users u WHERE u.id = 1;';
