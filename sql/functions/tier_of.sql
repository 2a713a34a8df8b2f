-- The rule is the text behind the name, which has no colon. The calculation is exact for any numbers.
CREATE OR REPLACE FUNCTION centile.tier_of(p_tiers text[], p_order text, p_score bigint, p_rank bigint, p_players bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT t.name
        FROM (SELECT split_part(u.tier, ':', 1) AS name, string_to_array(substr(u.tier, strpos(u.tier, ':') + 2), ' ') AS rule, u.place
              FROM unnest(p_tiers) WITH ORDINALITY AS u (tier, place)) t
        WHERE CASE t.rule[1] WHEN 'top' THEN p_rank * 100::numeric <= t.rule[2]::numeric * p_players
                             WHEN 'rank' THEN p_rank <= t.rule[2]::bigint
                             ELSE CASE p_order WHEN 'asc' THEN p_score <= t.rule[2]::bigint ELSE p_score >= t.rule[2]::bigint END END
        ORDER BY t.place LIMIT 1);

COMMENT ON FUNCTION centile.tier_of(text[], text, bigint, bigint, bigint) IS
'The first of these tiers whose rule a player meets; NULL for none. centile.periods has the tiers of each period. Example: SELECT centile.tier_of(''{gold: top 10 %,silver: score 5000}'', ''desc'', 5200, 11, 100) AS tier;';
GRANT EXECUTE ON FUNCTION centile.tier_of(text[], text, bigint, bigint, bigint) TO centile_reader;
