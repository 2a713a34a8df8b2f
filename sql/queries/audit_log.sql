SELECT happened_at AS "happened_at!", actor AS "actor!", action AS "action!", board, subject
FROM centile.audit_log
ORDER BY audit_id DESC
LIMIT $1
