-- The counts give the bucket, and a scan from its nearer end gives the key. So page 100,000 costs
-- about as much as page 1.
CREATE OR REPLACE FUNCTION centile_store.key_at(p_ranking_id bigint, p_position bigint, OUT bucket smallint, OUT key centile_store.rank_key)
RETURNS SETOF record
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_players bigint[] := centile_store.bucket_totals(p_ranking_id);
    v_left    bigint := p_position;
    v_place   integer := cardinality(v_players);
    v_is_low  boolean;
BEGIN
    IF v_players IS NULL OR p_position < 1 THEN
        RETURN;
    END IF;
    PERFORM centile_store.refuse_damaged(p_ranking_id);
    WHILE v_left > v_players[v_place] LOOP
        v_left := v_left - v_players[v_place];
        v_place := v_place - 1;
        IF v_place = 0 THEN
            RETURN;
        END IF;
    END LOOP;
    IF v_players[v_place] IS NULL THEN
        RAISE EXCEPTION 'the counts of ranking % are incomplete', p_ranking_id
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    v_is_low := 2 * v_left > v_players[v_place];
    bucket := (SELECT g.buckets[v_place] FROM centile_store.rankings g WHERE g.id = p_ranking_id);
    RETURN QUERY
    SELECT bucket, k FROM centile_store.key_in_bucket(bucket, p_ranking_id,
        CASE WHEN v_is_low THEN v_players[v_place] - v_left ELSE v_left - 1 END, v_is_low) k;
END
$$;

COMMENT ON FUNCTION centile_store.key_at(bigint, bigint) IS
'The key at a position of a ranking; no row beyond the last. Example: SELECT * FROM centile_store.key_at(1, 3);';
