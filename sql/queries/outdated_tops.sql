-- Names of closed periods whose tops must leave Redis: of the given ones, or without $1 of those that
-- have lost an erased player or their archive within three days, or are losing a player.
SELECT b.slug AS board, centile_store.period_name(p.kind, p.label, p.segment) AS "period!"
FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
WHERE p.id = ANY (coalesce($1, ARRAY(
    SELECT d.id FROM centile_store.periods d WHERE d.archive_dropped_at > now() - interval '3 days'
    UNION
    SELECT n.period_id FROM centile_store.erasures e
    JOIN centile_store.named_players n ON n.user_ids @> ARRAY[e.user_id]
    WHERE e.done_at IS NULL OR e.done_at > now() - interval '3 days')))
