-- The page of a closed period after a key that was once the last of a page, of the archive or of the ranking before it.
-- As a rule its player still stands there: one look-up. Where the player has moved or left since, because the page was read
-- before the period ended or before a refresh, a binary search over the positions finds the first player below the key.
-- Archives hold no tiebreaks: where these order equals they are looked up in the ledger, also the key's own, which the page
-- of an archive could not name.
CREATE OR REPLACE FUNCTION centile_store.archive_after(p_period_id bigint, p_rank_key bigint, p_tie_key bigint, p_internal_id bigint, p_limit integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_archive record;
    v_time    timestamptz := centile.tie_key_time(p_tie_key);
    v_tie_key bigint := p_tie_key;
    v_above   bigint;
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    EXECUTE format(
        'SELECT a."position" FROM centile_archive.%I a
         WHERE a.user_id = $1 AND centile.rank_key(a.score, $2) = $3 AND a.reached_at = $4', v_archive.archive_name)
    INTO v_above
    USING p_internal_id, v_archive.score_order, p_rank_key, v_time;
    IF v_above IS NULL THEN
        IF v_archive.ties = 'tiebreak' AND p_tie_key >> 51 = 0 AND p_rank_key > -9223372036854775808 THEN
            v_tie_key := centile_store.archive_tie_key(v_archive.board_id, v_archive.mode, p_internal_id,
                centile.rank_key(p_rank_key, v_archive.score_order), v_time);
        END IF;
        EXECUTE format(
            -- The first low players are above the key, those after high are not.
            'WITH RECURSIVE search (low, high) AS (
                 SELECT 0::bigint, $1
                 UNION ALL
                 SELECT CASE WHEN t.is_above THEN t.middle ELSE s.low END, CASE WHEN t.is_above THEN s.high ELSE t.middle - 1 END
                 FROM search s
                 CROSS JOIN LATERAL (
                     SELECT a."position" AS middle, (centile.rank_key(a.score, $2), %s, -a.user_id) >= ($3, $4, -$5) AS is_above
                     FROM centile_archive.%I a WHERE a."position" = (s.low + s.high + 1) / 2) t
                 WHERE s.low < s.high)
             SELECT s.low FROM search s WHERE s.low = s.high',
            CASE v_archive.ties
                WHEN 'tiebreak' THEN 'CASE WHEN centile.rank_key(a.score, $2) = $3 THEN centile_store.archive_tie_key($6, $7, a.user_id, a.score, a.reached_at) END'
                ELSE 'centile.tie_key(a.reached_at)' END,
            v_archive.archive_name)
        INTO v_above
        USING v_archive.players, v_archive.score_order, p_rank_key, v_tie_key, p_internal_id, v_archive.board_id, v_archive.mode;
    END IF;
    RETURN QUERY SELECT r.* FROM centile_store.archive_rows(v_archive.archive_name, v_archive.score_order, v_above + 1, p_limit) r;
END
$$;

COMMENT ON FUNCTION centile_store.archive_after(bigint, bigint, bigint, bigint, integer) IS
'Rows of a closed period below a key. Example: SELECT position, rank, user_id, score FROM centile_store.archive_after(2, 100, 0, 5, 10);';
