-- The key p_steps places above a key (or the best one, when there are fewer), and how many places that was.
CREATE FUNCTION centile_store.key_climb(p_ranking_id bigint, INOUT rank_key bigint, INOUT tie_key bigint, INOUT user_key bigint, INOUT steps integer)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_variable
DECLARE
    v_bucket integer;
    v_wanted integer := steps;
    v_found  record;
BEGIN
    steps := 0;
    FOR v_bucket IN
        SELECT t.place - 1 FROM unnest(centile_store.bucket_totals(p_ranking_id)) WITH ORDINALITY AS t (players, place)
        WHERE t.players > 0 AND t.place - 1 >= (
            SELECT s.bucket FROM centile_store.stripes s
            WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (rank_key, tie_key, user_key)
            ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1)
        ORDER BY t.place
    LOOP
        EXIT WHEN steps >= v_wanted;
        EXECUTE format(
            'SELECT count(*) OVER () AS found, k.* FROM (
                 SELECT rank_key, tie_key, user_key FROM centile_store.%I
                 WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) > ($2, $3, $4)
                 ORDER BY rank_key, tie_key, user_key LIMIT $5) k
             ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT 1', centile_store.bucket_table(v_bucket::smallint))
            INTO v_found USING p_ranking_id, rank_key, tie_key, user_key, v_wanted - steps;
        CONTINUE WHEN v_found.found IS NULL;
        rank_key := v_found.rank_key;
        tie_key := v_found.tie_key;
        user_key := v_found.user_key;
        steps := steps + v_found.found;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.key_climb(bigint, bigint, bigint, bigint, integer) IS
'The key some places above a key. Example: SELECT * FROM centile_store.key_climb(1, 100, 0, 0, 4);';
