SELECT event AS "event!", outcome AS "outcome!", detail, repeated AS "repeated!",
       CASE WHEN outcome <> 'quarantined' THEN result END AS "result: Json<StoredResult>",
       CASE WHEN outcome = 'quarantined' THEN result END AS "quarantined: Json<StoredQuarantined>", batch AS "batch!", crowded
FROM centile_store.record_scores($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
