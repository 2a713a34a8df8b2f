-- SECURITY DEFINER, because readers may not read layouts. A closed period and a ranking without
-- bucket rows have none.
CREATE OR REPLACE FUNCTION centile.bucket_rows(p_board text, p_period text, p_place integer)
RETURNS TABLE (table_name text, user_id text, user_name text, score bigint, reached_at timestamptz, rank_key bigint, tie_key bigint, user_key bigint, lane smallint, tiebreak bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_ranking record;
BEGIN
    SELECT g.id, g.buckets[p_place] AS bucket, b.score_order, b.tiebreak_order INTO v_ranking
    FROM centile_store.source_named(p_board, p_period) s
    JOIN centile_store.rankings g ON g.id = s.ranking_id AND g.has_bucket_rows
    JOIN centile_store.boards b ON b.id = g.board_id;
    IF v_ranking.bucket IS NOT NULL THEN
        RETURN QUERY EXECUTE format(
            'SELECT $1, u.external_id, u.name, centile.rank_key(r.rank_key, $2), centile_store.shown_time(r.tie_key, $4), r.rank_key, r.tie_key, r.user_key, r.lane,
                    centile_store.shown_tiebreak(r.tie_key, $4)
             FROM centile_store.%I r LEFT JOIN centile_store.users u ON u.id = -r.user_key
             WHERE r.ranking_id = $3 ORDER BY r.rank_key DESC, r.tie_key DESC, r.user_key DESC', centile_store.bucket_table(v_ranking.bucket))
        USING 'centile_store.' || centile_store.bucket_table(v_ranking.bucket), v_ranking.score_order, v_ranking.id, v_ranking.tiebreak_order;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.bucket_rows(text, text, integer) IS
'Players and their keys in one bucket of an open period, as of the applied batches, best first. p_place is the place of the bucket in centile.bucket_occupancy: 1 has the worst scores, 100 the best. Example: SELECT user_id, user_name, score, rank_key, user_key FROM centile.bucket_rows(''main'', ''all_time'', 3);';
GRANT EXECUTE ON FUNCTION centile.bucket_rows(text, text, integer) TO centile_reader;
