-- A page of some players, ranked among each other. $10 is NULL except for a page below a key.
SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       l.players AS "local_players!", l.rows AS "rows!: Json<Vec<LocalRow>>"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
CROSS JOIN LATERAL centile_store.local_rows($3, $6, $7,
    CASE WHEN $10::bigint IS NOT NULL THEN ($8, $9, $10)::centile_store.rank_key END, $11, $12) l
