CREATE OR REPLACE VIEW centile.submissions AS
SELECT i.number, coalesce(i.slug, b.slug) AS board, i.user_id, i.points, i.event_id, i.submitted_by, i.submitted_at, 'waiting' AS state,
       NULL::text AS code, NULL::text AS reason, NULL::bigint AS quarantine_id, NULL::timestamptz AS decided_at
FROM centile_store.inbox i JOIN centile_store.board_names b ON b.id = i.board_id
UNION ALL
SELECT f.number, b.slug, f.user_id, f.points, f.event_id, f.submitted_by, f.submitted_at, CASE WHEN f.quarantine_id IS NULL THEN 'refused' ELSE 'quarantined' END,
       f.code, f.reason, f.quarantine_id, f.decided_at
FROM centile_store.inbox_failures f JOIN centile_store.board_names b ON b.id = f.board_id;

COMMENT ON VIEW centile.submissions IS
'Scores of centile.submit that are waiting, or that were refused or quarantined in the last seven days, with the reason. Example: SELECT board, user_id, points, state, code, reason FROM centile.submissions ORDER BY number;';
GRANT SELECT ON centile.submissions TO centile_reader, centile_writer;
