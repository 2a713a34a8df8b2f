-- p_boards: the boards and patterns of a limited key; '{}' for all boards. Such a key may change users without
-- scores and users with scores on these boards. Uses the caller's row: the current one may already have
-- the new id of a user who is erased now, and nobody may learn which old id it replaces.
CREATE OR REPLACE FUNCTION centile_store.check_editable(p_user centile_store.users, p_boards text[]) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_user.erased_at IS NOT NULL THEN
        RAISE EXCEPTION 'user % was erased', quote_literal(p_user.external_id) USING ERRCODE = 'CB409', DETAIL = 'user_erased';
    ELSIF p_boards <> '{}' AND NOT (
        SELECT coalesce(bool_or(b.is_of_key), true)
        FROM (SELECT o.id, o.slug = ANY (p_boards) AS is_of_key FROM centile_store.boards o
              UNION ALL
              SELECT n.id, n.slug = ANY (p_boards) OR o.slug = ANY (p_boards)
              FROM centile_store.players p JOIN centile_store.template_boards n ON n.id = p.board_id JOIN centile_store.boards o ON o.id = n.template_id
              WHERE p.user_id = p_user.id) b
        WHERE EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = b.id AND t.user_id = p_user.id AND t.kind = 'score')) THEN
        RAISE EXCEPTION 'user % has scores on other boards than those of the key', quote_literal(p_user.external_id) USING ERRCODE = 'CB403', DETAIL = 'user_id';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_editable(centile_store.users, text[]) IS
'Raises an error if a user was erased, or if a key that is limited to these boards may not change the user. Example: SELECT centile_store.check_editable(u, ''{main}'') FROM centile_store.users u WHERE u.id = 1;';
