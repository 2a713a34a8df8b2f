-- How many players of a ranking have a key above this one: whole buckets, whole stripes of its bucket, and rows of its
-- stripe. Stable, so that all of it sees the one snapshot of the calling statement.
CREATE FUNCTION centile_store.count_above(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_from  centile_store.stripes;
    v_to    centile_store.stripes;
    v_above bigint;
    v_rows  bigint;
BEGIN
    SELECT * INTO v_from FROM centile_store.stripes s
    WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (p_rank_key, p_tie_key, p_user_key)
    ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1;
    SELECT * INTO v_to FROM centile_store.stripes s
    WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) > (p_rank_key, p_tie_key, p_user_key)
    ORDER BY s.rank_key, s.tie_key, s.user_key LIMIT 1;

    SELECT coalesce(sum(c.players), 0) INTO v_above
    FROM centile_store.bucket_counts b, unnest(b.counts[v_from.bucket + 2:]) AS c (players)
    WHERE b.ranking_id = p_ranking_id;
    SELECT v_above + coalesce(sum(c.players), 0) INTO v_above
    FROM centile_store.stripe_counts s, unnest(s.counts[v_from.stripe + 1:]) AS c (players)
    WHERE s.ranking_id = p_ranking_id AND s.bucket = v_from.bucket;

    EXECUTE format('SELECT count(*) FROM centile_store.%I
                    WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) > ($2, $3, $4)
                      AND ($5 IS NULL OR (rank_key, tie_key, user_key) < ($5, $6, $7))',
                   centile_store.bucket_table(v_from.bucket))
    INTO v_rows
    USING p_ranking_id, p_rank_key, p_tie_key, p_user_key, v_to.rank_key, v_to.tie_key, v_to.user_key;
    RETURN v_above + v_rows;
END
$$;

COMMENT ON FUNCTION centile_store.count_above(bigint, bigint, bigint, bigint) IS
'Players of a ranking above a key. Example: SELECT centile_store.count_above(r.ranking_id, 100, 0, 0) FROM centile.periods r LIMIT 1;';
