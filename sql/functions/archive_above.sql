-- How many players of a closed period have a better rank key than each of these (or the same, with equals): a binary search
-- over the positions, all of them in one statement.
CREATE OR REPLACE FUNCTION centile_store.archive_above(p_period_id bigint, p_rank_keys bigint[], p_with_equals boolean)
RETURNS TABLE (rank_key bigint, players bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT k.rank_key, s.low
         FROM unnest($1) AS k (rank_key)
         CROSS JOIN LATERAL (
             -- The first low players are counted, those after high are not.
             WITH RECURSIVE search (low, high) AS (
                 SELECT 0::bigint, $2
                 UNION ALL
                 SELECT CASE WHEN t.is_above THEN t.middle ELSE s.low END, CASE WHEN t.is_above THEN s.high ELSE t.middle - 1 END
                 FROM search s
                 CROSS JOIN LATERAL (
                     SELECT a."position" AS middle,
                            CASE WHEN $3 THEN centile.rank_key(a.score, $4) >= k.rank_key ELSE centile.rank_key(a.score, $4) > k.rank_key END AS is_above
                     FROM centile_archive.%I a WHERE a."position" = (s.low + s.high + 1) / 2) t
                 WHERE s.low < s.high)
             SELECT s.low FROM search s WHERE s.low = s.high) s', v_archive.archive_name)
    USING p_rank_keys, v_archive.players, p_with_equals, v_archive.score_order;
END
$$;

COMMENT ON FUNCTION centile_store.archive_above(bigint, bigint[], boolean) IS
'Players of a closed period above rank keys. Example: SELECT * FROM centile_store.archive_above(2, ''{100,50}'', false);';
