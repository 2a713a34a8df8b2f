SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       1 + centile_store.newcomers_above($3, NULL, $6) AS "rank!"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
