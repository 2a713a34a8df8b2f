-- next_attempt_at is NULL without a webhook. 'infinity' marks messages from before the webhook.
CREATE OR REPLACE VIEW centile.outbox AS
SELECT o.id AS message_id, b.slug AS board, p.kind || ':' || p.label AS period, o.kind, centile.message_payload(o.id) AS payload, o.created_at, o.delivered_at, o.attempts,
       CASE WHEN o.delivered_at IS NULL AND w.board_id IS NOT NULL AND isfinite(o.next_attempt_at) THEN o.next_attempt_at END AS next_attempt_at,
       o.last_status, o.last_error
FROM centile_store.outbox o
JOIN centile_store.board_names b ON b.id = o.board_id
JOIN centile_store.periods p ON p.id = o.period_id
LEFT JOIN centile_store.webhooks w ON w.board_id = o.board_id;

COMMENT ON VIEW centile.outbox IS
'Messages for receivers about closed periods, and the state of their delivery; a message with next_attempt_at waits. Example: SELECT message_id, period, kind, payload -> ''players'' AS players, delivered_at, attempts, last_status FROM centile.outbox WHERE board = ''main'' ORDER BY message_id;';
GRANT SELECT ON centile.outbox TO centile_reader;
