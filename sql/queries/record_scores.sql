SELECT event AS "event!", outcome AS "outcome!", detail, repeated AS "repeated!", result AS "result: Json<StoredResult>", batch AS "batch!", crowded
FROM centile_store.record_scores($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
