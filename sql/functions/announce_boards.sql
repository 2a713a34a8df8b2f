-- A message for each 100 boards. It names their ids in closed_boards: centile_store.message_payload adds
-- the results when the message is read, so that closing a million boards writes little.
CREATE OR REPLACE FUNCTION centile_store.announce_boards(p_period centile_store.periods) RETURNS void
LANGUAGE sql VOLATILE
SET timezone = 'UTC'
AS $$
    INSERT INTO centile_store.outbox (board_id, period_id, kind, payload)
    SELECT p_period.board_id, p_period.id, 'periods_closed', jsonb_build_object(
        'type', 'periods_closed', 'template', t.name,
        'period', jsonb_build_object(
            'name', p_period.kind || ':' || p_period.label, 'kind', p_period.kind, 'label', p_period.label, 'state', 'closed',
            'starts_at', p_period.starts_at, 'ends_at', p_period.ends_at),
        'first_id', min(c.id), 'last_id', max(c.id))
    FROM centile_store.templates t
    CROSS JOIN (SELECT c.id, (row_number() OVER (ORDER BY c.id) - 1) / 100 AS n FROM centile_store.closed_boards c
                WHERE c.period_id = p_period.id AND c.players > 0
                  AND c.id >= centile_store.first_closed_id(p_period.ends_at) AND c.id < centile_store.first_closed_id(p_period.ends_at) + (1::bigint << 40)) c
    WHERE t.board_id = p_period.board_id
    GROUP BY t.name, c.n ORDER BY c.n
$$;

COMMENT ON FUNCTION centile_store.announce_boards(centile_store.periods) IS
'Writes the messages about a closed period of a template. Example: SELECT centile_store.announce_boards(p) FROM centile_store.periods p WHERE p.id = 0;';
