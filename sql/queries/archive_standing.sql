-- A player of a closed period with neighbours, in one snapshot. "player" is NULL without an entry.
-- Without neighbours it is one look-up in the archive.
SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!",
       to_jsonb(p) AS "player: Json<StoredPlayer>",
       CASE WHEN $7 > 0 THEN
           (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.position), '[]')
            FROM centile_store.archive_around($2, u.id, $7) r)
           ELSE '[]' END AS "rows!: Json<Vec<StoredRow>>",
       u.id IS NOT NULL AS "user_exists!"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
LEFT JOIN centile_store.users u ON u.external_id = $6
LEFT JOIN LATERAL centile_store.archive_players($2, ARRAY[u.id]) p ON true
