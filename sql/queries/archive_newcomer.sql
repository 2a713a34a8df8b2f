SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!", 1 + centile_store.newcomers_above(NULL, $2, $6) AS "rank!"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
