-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.newcomers_above(p_ranking_id bigint, p_period_id bigint, p_score bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_source   record;
    v_rank_key bigint;
BEGIN
    SELECT s.score_order, s.ties INTO v_source FROM centile_store.source_of(p_ranking_id, p_period_id) s;
    IF v_source.score_order = 'asc' AND p_score = centile_store.key_min() THEN
        -- The least bigint has no negative. No score is better.
        RETURN 0;
    END IF;
    v_rank_key := centile.rank_key(p_score, v_source.score_order);
    RETURN (centile_store.players_above(p_ranking_id, p_period_id, ARRAY[
        CASE v_source.ties WHEN 'shared' THEN centile_store.highest_key(v_rank_key) ELSE centile_store.lowest_key(v_rank_key) END]))[1];
END
$$;

COMMENT ON FUNCTION centile_store.newcomers_above(bigint, bigint, bigint) IS
'Players of a ranking, or of the archive of a period, who would rank above a newcomer with a score. Example: SELECT centile_store.newcomers_above(1, NULL, 100);';
