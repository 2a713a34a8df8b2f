-- Each rule selects the first players of the ranking, up to a position. A tier has those whom no
-- better tier has. Players who share a rank belong to one tier.
CREATE OR REPLACE FUNCTION centile_store.tier_ends(p_ranking_id bigint, p_period_id bigint, p_tiers text[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_source record;
    v_tier   text;
    v_rule   text[];
    v_worst  bigint;
    v_last   bigint;
    v_end    bigint := 0;
    v_ends   bigint[] := '{}';
BEGIN
    SELECT s.players, s.score_order, s.ties INTO v_source FROM centile_store.source_of(p_ranking_id, p_period_id) s;
    FOREACH v_tier IN ARRAY p_tiers LOOP
        v_rule := string_to_array(substr(v_tier, strpos(v_tier, ':') + 2), ' ');
        v_last := CASE v_rule[1] WHEN 'top' THEN floor(v_rule[2]::numeric * v_source.players / 100)
                                 WHEN 'rank' THEN least(v_rule[2]::bigint, coalesce(v_source.players, 0)) END;
        -- The worst rank key that the rule takes, unless it takes these positions.
        v_worst := CASE WHEN v_rule[1] = 'score' THEN centile.rank_key(v_rule[2]::bigint, v_source.score_order)
                        WHEN v_source.ties = 'shared' AND v_last BETWEEN 1 AND v_source.players - 1
                        THEN centile_store.rank_key_at(p_ranking_id, p_period_id, v_last) END;
        IF v_worst IS NOT NULL THEN
            v_last := (centile_store.players_above(p_ranking_id, p_period_id, ARRAY[centile_store.lowest_key(v_worst)]))[1];
        END IF;
        v_end := greatest(v_end, v_last);
        v_ends := v_ends || v_end;
    END LOOP;
    RETURN v_ends;
END
$$;

COMMENT ON FUNCTION centile_store.tier_ends(bigint, bigint, text[]) IS
'The last position that each of these tiers or a better one takes in a ranking, or in the archive of a period. Example: SELECT centile_store.tier_ends(1, NULL, ''{crown: rank 1,gold: top 50 %}'');';
