-- All rows of one ranking at once.
CREATE OR REPLACE FUNCTION centile_store.remove_released(p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_ranking_id bigint;
BEGIN
    SELECT r.id INTO v_ranking_id FROM centile_store.rankings r
    -- A read may have begun before the release, and take its snapshots of the workers later.
    WHERE r.released_at < now() - interval '1 minute' AND NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = r.id)
    ORDER BY r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = v_ranking_id;
    DELETE FROM centile_store.bucket_counts c WHERE c.ranking_id = v_ranking_id;
    DELETE FROM centile_store.fillings f WHERE f.ranking_id = v_ranking_id;
    DELETE FROM centile_store.rankings r WHERE r.id = v_ranking_id;
    RETURN 1;
END
$$;

COMMENT ON FUNCTION centile_store.remove_released(integer) IS
'Removes a released ranking with all its rows, and returns 1; 0 when nothing is left.';
