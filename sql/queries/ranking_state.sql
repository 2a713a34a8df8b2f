SELECT epoch AS "epoch!", layout AS "layout!", batches AS "batches!", players AS "players!", revision AS "revision!"
FROM centile_store.ranking_state($1, $2, $3, $4, $5)
