CREATE OR REPLACE FUNCTION centile_store.layouts_of(
    p_rankings bigint[], OUT buckets smallint[], OUT rank_keys bigint[], OUT tie_keys bigint[], OUT user_keys bigint[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(u.bucket ORDER BY g.id, u.place), array_agg(u.rank_key ORDER BY g.id, u.place),
           array_agg(u.tie_key ORDER BY g.id, u.place), array_agg(u.user_key ORDER BY g.id, u.place)
    FROM centile_store.rankings g
    CROSS JOIN LATERAL unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
        AS u (bucket, rank_key, tie_key, user_key, place)
    WHERE g.id = ANY (p_rankings)
$$;

COMMENT ON FUNCTION centile_store.layouts_of(bigint[]) IS
'Layouts of rankings in the order of their ids, a hundred places for each. Example: SELECT cardinality(buckets) FROM centile_store.layouts_of(''{1}'');';
