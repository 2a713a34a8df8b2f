CREATE OR REPLACE FUNCTION centile_store.tier_counts(p_ranking_id bigint, p_period_id bigint, p_tiers text[])
RETURNS TABLE (place integer, tier text, rule text, players bigint)
LANGUAGE sql STABLE
AS $$
    SELECT t.place::integer, split_part(t.tier, ':', 1), substr(t.tier, strpos(t.tier, ':') + 2),
           e.ends[t.place] - coalesce(e.ends[t.place - 1], 0)
    FROM (SELECT centile_store.tier_ends(p_ranking_id, p_period_id, p_tiers) AS ends OFFSET 0) e
    CROSS JOIN unnest(p_tiers) WITH ORDINALITY AS t (tier, place)
    ORDER BY t.place
$$;

COMMENT ON FUNCTION centile_store.tier_counts(bigint, bigint, text[]) IS
'Players of each of these tiers in a ranking, or in the archive of a period. Example: SELECT * FROM centile_store.tier_counts(1, NULL, ''{crown: rank 1,gold: top 50 %}'');';
