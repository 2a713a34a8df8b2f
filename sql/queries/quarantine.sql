-- Events of a board's quarantine in a state, in order of arrival, from a place onwards.
SELECT q.quarantine_id AS "quarantine_id!", q.user_id AS "user_id!", q.points AS "points!", q.tiebreak, q.reason, q.event_id, q.rule AS "rule!",
       q.detail AS "detail!", q.submitted_at AS "submitted_at!", q.decided_at, q.decided_by, q.decided_why, q.transaction_id, q.metadata::text AS metadata
FROM centile.quarantine q
WHERE q.board = $1 AND q.state = $2 AND q.quarantine_id > $3
ORDER BY q.quarantine_id
LIMIT $4
