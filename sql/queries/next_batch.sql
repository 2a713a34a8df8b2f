SELECT b.structure_revision, l.batch, l.last_at, pg_postmaster_start_time() AS "server_started_at!", clock_timestamp() AS "now!",
       p.players AS "players!: Vec<PlayerState>",
       $7::text[] <> '{}' AND EXISTS (
           SELECT FROM unnest($5::integer[], $6::text[], $7::text[]) AS i (board_id, name, id)
           CROSS JOIN LATERAL (SELECT u.id FROM centile_store.users u WHERE u.external_id = i.name LIMIT 1) u
           CROSS JOIN LATERAL (SELECT FROM centile_store.transaction_ids k WHERE k.board_id = i.board_id AND k.user_id = u.id AND k.external_id = i.id LIMIT 1) k) AS "has_known_ids!"
FROM centile_store.boards b
CROSS JOIN LATERAL (SELECT l.batch, l.last_at FROM centile_store.board_lanes l WHERE l.board_id = b.id AND l.lane = $2 ORDER BY l.batch DESC LIMIT 1) l
CROSS JOIN LATERAL (SELECT array_agg(p.player ORDER BY p.place) AS players FROM centile_store.batch_players($1, $2, $3, $4) p) p
WHERE b.id = $1
