CREATE OR REPLACE FUNCTION centile_store.newcomers_above(p_ranking_id bigint, p_period_id bigint, p_score bigint) RETURNS bigint
LANGUAGE sql STABLE
-- The least bigint has no negative. Where smaller is better, no score is better.
RETURN (SELECT CASE WHEN s.score_order = 'asc' AND p_score = centile_store.key_min() THEN 0
                    ELSE (centile_store.players_above(p_ranking_id, p_period_id, ARRAY[
                        CASE s.ties WHEN 'shared' THEN centile_store.highest_key(k.rank_key) ELSE centile_store.lowest_key(k.rank_key) END]))[1] END
        FROM centile_store.source_of(p_ranking_id, p_period_id) s
        CROSS JOIN LATERAL (SELECT CASE WHEN p_score > centile_store.key_min() THEN centile.rank_key(p_score, s.score_order) ELSE p_score END AS rank_key) k);

COMMENT ON FUNCTION centile_store.newcomers_above(bigint, bigint, bigint) IS
'Players of a ranking, or of the archive of a period, who would rank above a newcomer with a score. Example: SELECT centile_store.newcomers_above(1, NULL, 100);';
