-- Ranks after a commit, all in one snapshot.
SELECT c.rank, c.previous_rank
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS e (ranking_id, user_id, was_rank_key, was_tie_key, place)
LEFT JOIN LATERAL centile_store.rank_change(e.ranking_id, e.user_id, e.was_rank_key, e.was_tie_key) c ON true
ORDER BY e.place
