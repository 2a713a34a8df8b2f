SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.position), '[]')
        FROM centile_store.archive_rows($2, $6, $7) r) AS "rows!: Json<Vec<StoredRow>>"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
