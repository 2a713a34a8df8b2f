SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.position), '[]')
        FROM centile_store.page_rows($3, $6, $7) r) AS "rows!: Json<Vec<StoredRow>>"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
