SELECT message_id AS "id!", board AS "board!", period AS "period!", kind AS "kind!", payload AS "payload!", created_at AS "created_at!",
       delivered_at, attempts AS "attempts!", next_attempt_at, last_status, last_error
FROM centile.outbox
WHERE ($1::bigint IS NULL OR message_id = $1) AND ($2::text IS NULL OR board = $2) AND (NOT $3::boolean OR next_attempt_at IS NOT NULL)
ORDER BY message_id DESC
LIMIT $4
