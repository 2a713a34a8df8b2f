-- In the transaction of the act, so that neither exists without the other. p_subject names the
-- object of the act, unless that is a player. Omits values that are the same before and after; an
-- act that changed nothing is not recorded.
CREATE OR REPLACE FUNCTION centile_store.note_act(
    p_actor text, p_action text, p_board_id integer, p_before jsonb, p_after jsonb, p_subject text DEFAULT NULL, p_user_id bigint DEFAULT NULL)
RETURNS void
LANGUAGE sql VOLATILE
AS $$
    INSERT INTO centile_store.audit_log (actor, action, board_id, subject, user_id, before, after)
    SELECT p_actor, p_action, p_board_id, p_subject, p_user_id, c.before, c.after
    FROM (SELECT (SELECT jsonb_object_agg(m.key, m.value) FROM jsonb_each(p_before) m WHERE p_after -> m.key IS DISTINCT FROM m.value) AS before,
                 (SELECT jsonb_object_agg(m.key, m.value) FROM jsonb_each(p_after) m WHERE p_before -> m.key IS DISTINCT FROM m.value) AS after) c
    WHERE num_nonnulls(c.before, c.after) > 0
$$;

COMMENT ON FUNCTION centile_store.note_act(text, text, integer, jsonb, jsonb, text, bigint) IS
'Records an administrator''s action in the audit log. Example: SELECT centile_store.note_act(''dora'', ''change_board'', 1, ''{"title": "Main board"}'', ''{"title": "Main"}'', ''main'');';
