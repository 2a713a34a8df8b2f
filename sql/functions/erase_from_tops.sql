-- Replaces the player's id and name in the tops and messages of the next p_limit closed periods
-- that name the player, or of all. Returns these periods, which have another archive revision now.
-- Also removes up to 100 * p_limit edges between the player and friends, and the metadata of as
-- many events, or all. Repeated and overlapping calls are harmless.
CREATE OR REPLACE FUNCTION centile_store.erase_from_tops(p_user text, p_limit integer DEFAULT NULL, OUT period_ids bigint[], OUT is_done boolean)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_user_id bigint := centile_store.user_named(p_user);
    v_erasure centile_store.erasures;
    v_name    text;
BEGIN
    SELECT e.* INTO v_erasure FROM centile_store.erasures e
    WHERE e.user_id = v_user_id AND e.done_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        period_ids := '{}';
        is_done := true;
        RETURN;
    END IF;
    SELECT u.name INTO v_name FROM centile_store.users u WHERE u.id = v_erasure.user_id;
    -- Erasures of friends of each other delete the same edges, in different orders.
    PERFORM pg_advisory_xact_lock(hashtextextended('erasure of friends', 0))
    WHERE EXISTS (SELECT FROM centile_store.friends e WHERE e.user_id = v_user_id)
       OR EXISTS (SELECT FROM centile_store.friends e WHERE e.friend_id = v_user_id);
    DELETE FROM centile_store.friends f
    USING (SELECT e.user_id, e.friend_id FROM centile_store.friends e WHERE e.user_id = v_user_id
           UNION ALL
           SELECT e.user_id, e.friend_id FROM centile_store.friends e WHERE e.friend_id = v_user_id
           LIMIT 100 * p_limit) e
    WHERE f.user_id = e.user_id AND f.friend_id = e.friend_id;
    PERFORM centile_store.list_named_players();
    period_ids := ARRAY(
        SELECT n.period_id FROM centile_store.named_players n
        WHERE n.user_ids @> ARRAY[v_erasure.user_id] AND n.period_id >= v_erasure.next_period_id
        ORDER BY n.period_id LIMIT p_limit);
    is_done := centile_store.erase_metadata(v_user_id, 100 * p_limit);
    is_done := p_limit IS NULL OR (is_done AND cardinality(period_ids) < p_limit
        AND NOT EXISTS (SELECT FROM centile_store.friends e WHERE e.user_id = v_user_id)
        AND NOT EXISTS (SELECT FROM centile_store.friends e WHERE e.friend_id = v_user_id));
    -- Periods first, then messages, both by id: corrections and deliveries lock several of them,
    -- too.
    PERFORM FROM centile_store.periods p WHERE p.id = ANY (period_ids) ORDER BY p.id FOR NO KEY UPDATE;
    -- All other bytes of a top stay the same: the text of jsonb is the same for the same value.
    UPDATE centile_store.periods p
    SET frozen_top = r.top, archive_revision = p.archive_revision + 1
    FROM (SELECT o.id, convert_to(jsonb_set(t.top, '{rows}', (
                     SELECT jsonb_agg(CASE WHEN (r.row ->> 'internal_id')::bigint = v_erasure.user_id
                                           THEN r.row || jsonb_build_object('user_id', p_user, 'user_name', v_name, 'avatar', NULL)
                                           ELSE r.row END ORDER BY r.place)
                     FROM jsonb_array_elements(t.top -> 'rows') WITH ORDINALITY AS r (row, place)))::text, 'UTF8') AS top
          FROM centile_store.periods o CROSS JOIN LATERAL (SELECT convert_from(o.frozen_top, 'UTF8')::jsonb AS top) t
          WHERE o.id = ANY (period_ids) AND o.frozen_top IS NOT NULL) r
    WHERE p.id = r.id AND p.frozen_top <> r.top;
    -- Also delivered messages, because they can be sent again. In later messages the old id means
    -- another player.
    PERFORM FROM centile_store.outbox o WHERE o.period_id = ANY (period_ids) ORDER BY o.id FOR NO KEY UPDATE;
    UPDATE centile_store.outbox o
    SET payload = centile_store.erased_in_message(o.payload, v_erasure.old_id, p_user, v_name)
    WHERE o.period_id = ANY (period_ids) AND o.id <= v_erasure.last_message_id
      AND centile_store.players_of_message(o.payload) @> jsonb_build_array(jsonb_build_object('user_id', v_erasure.old_id));
    UPDATE centile_store.erasures e
    SET next_period_id = coalesce(period_ids[cardinality(period_ids)] + 1, e.next_period_id),
        old_id = CASE WHEN NOT is_done THEN e.old_id END, done_at = CASE WHEN is_done THEN clock_timestamp() END
    WHERE e.user_id = v_erasure.user_id;
END
$$;

COMMENT ON FUNCTION centile_store.erase_from_tops(text, integer) IS
'Continues an erasure, and returns the closed periods it has changed and whether it is done. Example: SELECT t.is_done FROM centile.erase_user(''ann'', p_in_steps => true) e CROSS JOIN LATERAL centile_store.erase_from_tops(e.user_id, 100) t;';
