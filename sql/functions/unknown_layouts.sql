CREATE OR REPLACE FUNCTION centile_store.unknown_layouts(
    p_rankings bigint[], p_known_rankings bigint[], p_known_times timestamptz[],
    OUT rankings bigint[], OUT times timestamptz[], OUT buckets smallint[], OUT rank_keys bigint[], OUT tie_keys bigint[], OUT user_keys bigint[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(g.id ORDER BY g.id), array_agg(g.laid_out_at ORDER BY g.id) INTO rankings, times
    FROM unnest(p_rankings) AS r (id)
    CROSS JOIN LATERAL (SELECT g.id, g.laid_out_at FROM centile_store.rankings g WHERE g.id = r.id LIMIT 1) g;
    IF rankings = p_known_rankings AND times = p_known_times THEN
        rankings := NULL;
    ELSE
        SELECT array_agg(u.bucket ORDER BY g.id, u.place), array_agg(u.rank_key ORDER BY g.id, u.place),
               array_agg(u.tie_key ORDER BY g.id, u.place), array_agg(u.user_key ORDER BY g.id, u.place)
        INTO buckets, rank_keys, tie_keys, user_keys
        FROM centile_store.rankings g
        CROSS JOIN LATERAL unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
            AS u (bucket, rank_key, tie_key, user_key, place)
        WHERE g.id = ANY (rankings);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.unknown_layouts(bigint[], bigint[], timestamptz[]) IS
'Layouts of rankings, a hundred places for each; NULL if the caller knows exactly these. Example: SELECT rankings FROM centile_store.unknown_layouts(''{1}'', ''{}'', ''{}'');';
