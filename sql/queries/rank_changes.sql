-- Ranks after a commit, all in one snapshot.
SELECT c.rank, c.previous_rank, c.score, c.players
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS e (period, user_id, was_rank_key, was_tie_key, place)
LEFT JOIN LATERAL centile_store.rank_change($1, e.period, e.user_id, e.was_rank_key, e.was_tie_key) c ON true
ORDER BY e.place
