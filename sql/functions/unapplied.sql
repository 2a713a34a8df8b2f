-- was_rank_key and was_tie_key are NULL if the player had no entry at the applied batches. A player's batches are all
-- of one lane.
CREATE OR REPLACE FUNCTION centile_store.unapplied(p_ranking_id bigint)
RETURNS TABLE (user_id bigint, was_rank_key bigint, was_tie_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT DISTINCT ON (e.user_id) e.user_id, e.was_rank_key, e.was_tie_key
    FROM centile_store.rankings g
    CROSS JOIN LATERAL unnest(centile_store.applied_batches(g.board_id, g.lanes)) WITH ORDINALITY AS a (batch, place)
    JOIN centile_store.batch_log c ON c.board_id = g.board_id AND c.lane = a.place - 1 AND c.batch > a.batch
    CROSS JOIN LATERAL unnest(c.ranking_ids, c.user_ids, c.was_rank_keys, c.was_tie_keys) AS e (ranking_id, user_id, was_rank_key, was_tie_key)
    WHERE g.id = p_ranking_id AND e.ranking_id = p_ranking_id
    ORDER BY e.user_id, c.batch
$$;

COMMENT ON FUNCTION centile_store.unapplied(bigint) IS
'Players of a ranking whose latest entries are not in its bucket rows yet, with their keys at the applied batches. Example: SELECT count(*) FROM centile_store.unapplied(1);';
