SELECT epoch AS "epoch!", batches AS "batches!", players AS "players!", revision AS "revision!"
FROM centile_store.ranking_state($1, $2, $3, $4, $5)
