-- Whether an archive is still the one that the caller means. Reads none of its rows.
SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
