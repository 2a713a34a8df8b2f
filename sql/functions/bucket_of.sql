-- The highest place whose lower bound is not above the key. next_* is the bound of the place above,
-- or the greatest key. The key comes as three numbers: plpgsql takes longer to pass a record, and
-- every rank by SQL passes through here.
CREATE OR REPLACE FUNCTION centile_store.bucket_of(
    p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
    OUT place integer, OUT bucket smallint, OUT low_rank_key bigint, OUT low_tie_key bigint, OUT low_user_key bigint,
    OUT next_rank_key bigint, OUT next_tie_key bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_buckets   smallint[];
    v_rank_keys bigint[];
    v_tie_keys  bigint[];
    v_user_keys bigint[];
BEGIN
    SELECT g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys INTO v_buckets, v_rank_keys, v_tie_keys, v_user_keys
    FROM centile_store.rankings g WHERE g.id = p_ranking_id AND g.damaged_at IS NULL;
    PERFORM centile_store.refuse_damaged(p_ranking_id) WHERE v_buckets IS NULL;
    place := width_bucket(p_rank_key, v_rank_keys);
    WHILE v_rank_keys[place] = p_rank_key AND (v_tie_keys[place], v_user_keys[place]) > (p_tie_key, p_user_key) LOOP
        place := place - 1;
    END LOOP;
    bucket := v_buckets[place];
    low_rank_key := v_rank_keys[place];
    low_tie_key := v_tie_keys[place];
    low_user_key := v_user_keys[place];
    next_rank_key := coalesce(v_rank_keys[place + 1], centile_store.key_max());
    next_tie_key := coalesce(v_tie_keys[place + 1], centile_store.key_max());
END
$$;

COMMENT ON FUNCTION centile_store.bucket_of(bigint, bigint, bigint, bigint) IS
'Place and bucket of a key in a ranking, with the bounds of the bucket; NULL without the ranking. Example: SELECT place, bucket FROM centile_store.bucket_of(1, 100, 0, 0);';
