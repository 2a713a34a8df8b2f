SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!", 1 + a.above AS "rank!"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
CROSS JOIN centile_store.archive_newcomers_above($2, $6) AS a (above)
