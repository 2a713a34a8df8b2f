-- A player with neighbours, all in one snapshot; "player" is NULL when the player has no entry.
SELECT s.epoch AS "epoch!", s.layout AS "layout!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       to_jsonb(p) AS "player: Json<StoredPlayer>",
       (SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY r.position), '[]')
        FROM centile_store.rows_around($3, u.id, $7) r) AS "rows!: Json<Vec<StoredRow>>",
       u.id IS NOT NULL AS "user_exists!"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
LEFT JOIN centile_store.users u ON u.external_id = $6
LEFT JOIN LATERAL centile_store.player_row($3, u.id) p ON true
