-- A binary search over the positions for each key. Archives hold no tiebreaks of 12 bits; where these
-- order equal scores, the ledger supplies them.
CREATE OR REPLACE FUNCTION centile_store.archive_above(p_period_id bigint, p_keys centile_store.rank_key[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
    v_above   bigint[];
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF FOUND THEN
        EXECUTE format(
            'SELECT array_agg(s.low ORDER BY k.n)
             FROM unnest($1) WITH ORDINALITY AS k (rank_key, tie_key, user_key, n)
             CROSS JOIN LATERAL (
                 -- The first "low" players are above the key; those after "high" are not.
                 WITH RECURSIVE search (low, high) AS (
                     SELECT 0::bigint, $2
                     UNION ALL
                     SELECT CASE WHEN t.is_above THEN t.middle ELSE s.low END, CASE WHEN t.is_above THEN s.high ELSE t.middle - 1 END
                     FROM search s
                     CROSS JOIN LATERAL (
                         SELECT a."position" AS middle, (centile.rank_key(a.score, $3), %s, -a.user_id) > (k.rank_key, k.tie_key, k.user_key) AS is_above
                         FROM %s a WHERE a."position" = (s.low + s.high + 1) / 2) t
                     WHERE s.low < s.high)
                 SELECT s.low FROM search s WHERE s.low = s.high) s',
            CASE v_archive.ties
                WHEN 'tiebreak' THEN 'CASE WHEN centile.rank_key(a.score, $3) = k.rank_key THEN centile_store.archive_tie_key($4, $5, a.user_id, a.score, a.reached_at) END'
                ELSE v_archive.tie_key END,
            v_archive.source)
        INTO v_above
        USING p_keys, v_archive.players, v_archive.score_order, v_archive.board_id, v_archive.mode;
    END IF;
    RETURN v_above;
END
$$;

COMMENT ON FUNCTION centile_store.archive_above(bigint, centile_store.rank_key[]) IS
'Players of a closed period above each of these keys. Example: SELECT centile_store.archive_above(4, ARRAY[centile_store.highest_key(100), centile_store.lowest_key(100)]);';
