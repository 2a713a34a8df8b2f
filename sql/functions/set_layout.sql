CREATE OR REPLACE FUNCTION centile_store.set_layout(p_ranking_id bigint, p_buckets smallint[], p_bounds centile_store.rank_key[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    UPDATE centile_store.rankings g
    SET layout = g.layout + 1, buckets = p_buckets,
        low_rank_keys = b.rank_keys, low_tie_keys = b.tie_keys, low_user_keys = b.user_keys
    FROM (SELECT array_agg(u.rank_key ORDER BY u.ordinality) AS rank_keys, array_agg(u.tie_key ORDER BY u.ordinality) AS tie_keys,
                 array_agg(u.user_key ORDER BY u.ordinality) AS user_keys
          FROM unnest(p_bounds) WITH ORDINALITY u) b
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.set_layout(bigint, smallint[], centile_store.rank_key[]) IS
'Replaces the layout of a ranking: buckets by place, and the lower bound of each. Example: SELECT centile_store.set_layout(1, l.buckets, l.bounds) FROM centile_store.rankings g CROSS JOIN LATERAL centile_store.lock_layout(g.id, g.layout) l WHERE g.id = 1;';
