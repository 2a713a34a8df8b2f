-- Of one period, or of all periods frozen since they were listed. Listed players stay, because the
-- message keeps the first top.
CREATE OR REPLACE FUNCTION centile_store.list_named_players(p_period_id bigint DEFAULT NULL) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    INSERT INTO centile_store.named_players AS n (period_id, cut_off_at, user_ids)
    SELECT p.id, p.cut_off_at, ARRAY(
        SELECT (r.row ->> 'internal_id')::bigint
        FROM jsonb_array_elements(convert_from(p.frozen_top, 'UTF8')::jsonb -> 'rows') AS r (row)
        UNION
        SELECT u.id
        FROM centile_store.outbox o
        CROSS JOIN LATERAL jsonb_array_elements(centile_store.players_of_message(o.payload)) AS r (row)
        JOIN centile_store.users u ON u.external_id = r.row ->> 'user_id'
        WHERE o.period_id = p.id)
    FROM centile_store.periods p
    LEFT JOIN centile_store.named_players l ON l.period_id = p.id
    WHERE p.state = 'closed' AND p.archive_revision > 0 AND (l.period_id IS NULL OR l.cut_off_at IS DISTINCT FROM p.cut_off_at)
      AND (p_period_id IS NULL OR p.id = p_period_id)
    ORDER BY p.id
    ON CONFLICT ON CONSTRAINT named_players_pkey DO UPDATE
    SET cut_off_at = excluded.cut_off_at, user_ids = ARRAY(SELECT unnest(n.user_ids) UNION SELECT unnest(excluded.user_ids))
$$;

COMMENT ON FUNCTION centile_store.list_named_players(bigint) IS
'Lists the players whom the frozen top and the message of closed periods name. Example: SELECT centile_store.list_named_players();';
