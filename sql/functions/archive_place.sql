-- The key ended an earlier page, of the archive or of its live ranking. Usually the player still has
-- this key, and one look-up finds the position. If the player has moved or left since, a search
-- finds it. A page of an archive does not contain tiebreaks of 12 bits, so the ledger supplies them
-- where they order equal scores.
CREATE OR REPLACE FUNCTION centile_store.archive_place(p_period_id bigint, p_rank_key bigint, p_tie_key bigint, p_internal_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
    v_time    timestamptz := centile.tie_key_time(p_tie_key);
    v_tie_key bigint := p_tie_key;
    v_place   bigint;
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    EXECUTE format(
        'SELECT a."position" FROM %s a
         WHERE a.user_id = $1 AND centile.rank_key(a.score, $2) = $3 AND %s = $4', v_archive.source, v_archive.tie_key)
    INTO v_place
    -- An archive of another board holds only the time of a tie key.
    USING p_internal_id, v_archive.score_order, p_rank_key, CASE v_archive.ties WHEN 'second' THEN p_tie_key ELSE p_tie_key & 2251799813685247 END;
    IF v_place IS NULL THEN
        IF v_archive.ties = 'tiebreak' AND p_tie_key >> 51 = 0 AND p_rank_key > centile_store.key_min() THEN
            v_tie_key := centile_store.archive_tie_key(v_archive.board_id, v_archive.mode, p_internal_id,
                centile.rank_key(p_rank_key, v_archive.score_order), v_time);
        END IF;
        -- Above the next lower key: at or above this one.
        v_place := (centile_store.archive_above(p_period_id, ARRAY[(p_rank_key, v_tie_key, -p_internal_id - 1)::centile_store.rank_key]))[1];
    END IF;
    RETURN v_place;
END
$$;

COMMENT ON FUNCTION centile_store.archive_place(bigint, bigint, bigint, bigint) IS
'Number of players of a closed period at or above a key. Example: SELECT centile_store.archive_place(4, 100, 0, 5);';
