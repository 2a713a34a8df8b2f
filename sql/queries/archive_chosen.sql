SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.position), '[]')
        FROM centile_store.archive_players($2, ARRAY(SELECT u.id FROM centile_store.users u WHERE u.external_id = ANY ($6::text[]))) r
       ) AS "rows!: Json<Vec<StoredPlayer>>"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
