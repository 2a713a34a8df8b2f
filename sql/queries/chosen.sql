SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.position), '[]')
        FROM centile_store.users u CROSS JOIN LATERAL centile_store.player_row($3, u.id) r
        WHERE u.external_id = ANY ($6::text[])) AS "rows!: Json<Vec<StoredPlayer>>"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
