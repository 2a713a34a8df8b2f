-- The bytes of a frozen top, if the archive is still at this revision.
SELECT p.frozen_top AS "frozen_top!"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
JOIN centile_store.periods p ON p.id = $2
