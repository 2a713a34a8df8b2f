CREATE OR REPLACE VIEW centile.audit_log AS
SELECT a.id AS audit_id, a.happened_at, a.actor, a.action, b.slug AS board, coalesce(a.subject, u.external_id) AS subject, a.before, a.after
FROM centile_store.audit_log a
LEFT JOIN centile_store.board_names b ON b.id = a.board_id
LEFT JOIN centile_store.users u ON u.id = a.user_id;

COMMENT ON VIEW centile.audit_log IS
'Actions of administrators, with the values before and after. Example: SELECT actor, action, board, subject, after ->> ''reason'' AS reason FROM centile.audit_log WHERE action = ''correct'' ORDER BY audit_id DESC LIMIT 3;';
GRANT SELECT ON centile.audit_log TO centile_reader;
