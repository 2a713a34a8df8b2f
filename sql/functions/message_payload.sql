-- A message about boards of a template names their results. Their tops have up to 20 rows.
CREATE OR REPLACE FUNCTION centile.message_payload(p_message_id bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    v_message centile_store.outbox;
BEGIN
    SELECT * INTO v_message FROM centile_store.outbox o WHERE o.id = p_message_id;
    IF v_message.kind <> 'periods_closed' THEN
        RETURN v_message.payload || jsonb_build_object('message_id', v_message.id);
    END IF;
    RETURN v_message.payload - '{first_id,last_id}'::text[] || jsonb_build_object('message_id', v_message.id, 'boards', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('board', t.slug, 'revision', c.archive_revision, 'players', c.players, 'top', (
                   SELECT jsonb_agg(jsonb_build_object('position', r."position", 'rank', r.rank, 'user_id', u.external_id, 'name', u.name, 'score', r.score)
                                    || CASE WHEN r.tiebreak IS NULL THEN jsonb_build_object('reached_at', r.reached_at) ELSE jsonb_build_object('tiebreak', r.tiebreak) END
                                    ORDER BY r."position")
                   FROM centile_store.closed_results r JOIN centile_store.users u ON u.id = r.user_id
                   WHERE r.closed_id = c.id AND r."position" <= 20)) ORDER BY c.id), '[]')
        FROM centile_store.closed_boards c JOIN centile_store.template_boards t ON t.id = c.board_id
        WHERE c.id BETWEEN (v_message.payload ->> 'first_id')::bigint AND (v_message.payload ->> 'last_id')::bigint AND c.period_id = v_message.period_id));
END
$$;

COMMENT ON FUNCTION centile.message_payload(bigint) IS
'The text of a message; NULL if there is none. Example: SELECT centile.message_payload(1) IS NULL AS is_missing;';
GRANT EXECUTE ON FUNCTION centile.message_payload(bigint) TO centile_reader;
