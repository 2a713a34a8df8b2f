-- Takes the bucket lock of the ranking's board, to change the layout. NULL if the layout has changed, or
-- the ranking is damaged, has no bucket rows, or is no longer its period's.
CREATE OR REPLACE FUNCTION centile_store.lock_layout(p_ranking_id bigint, p_layout integer, OUT buckets smallint[], OUT bounds centile_store.rank_key[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.lock_buckets(g.board_id) FROM centile_store.rankings g WHERE g.id = p_ranking_id AND g.layout = p_layout;
    IF FOUND THEN
        SELECT g.buckets, ARRAY(
                   SELECT (u.rank_key, u.tie_key, u.user_key)::centile_store.rank_key
                   FROM unnest(g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY AS u (rank_key, tie_key, user_key, place)
                   ORDER BY u.place)
        INTO buckets, bounds
        FROM centile_store.current_rankings c JOIN centile_store.rankings g ON g.id = c.id
        WHERE g.id = p_ranking_id AND g.layout = p_layout AND g.has_bucket_rows AND g.damaged_at IS NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.lock_layout(bigint, integer) IS
'Locks a ranking''s layout for a change. Example: SELECT cardinality(l.bounds) AS places FROM centile_store.rankings g CROSS JOIN LATERAL centile_store.lock_layout(g.id, g.layout) l WHERE g.id = 1;';
