-- Reads at most p_limit entries of each index. The expression is that of users_search_idx, which
-- `centile migrate` creates (src/store/migrate/search_index.rs).
CREATE OR REPLACE FUNCTION centile_store.users_named(p_text text, p_limit integer) RETURNS text[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_text text COLLATE "C" := translate(lower(regexp_replace(normalize(p_text, NFKD), '[\u0300-\u036f]', '', 'g') COLLATE "und-x-icu"), 'ς', 'σ');
    v_last constant text := chr(1114111);
BEGIN
    RETURN ARRAY(
        (SELECT u.external_id FROM centile_store.users u
         WHERE u.external_id >= p_text AND u.external_id < p_text || v_last
         ORDER BY u.external_id LIMIT p_limit)
        UNION
        (SELECT u.external_id FROM centile_store.users u
         WHERE v_text <> '' AND u.name <> u.external_id
           AND translate(lower(regexp_replace(normalize(u.name, NFKD), '[\u0300-\u036f]', '', 'g') COLLATE "und-x-icu"), 'ς', 'σ') COLLATE "C" >= v_text
           AND translate(lower(regexp_replace(normalize(u.name, NFKD), '[\u0300-\u036f]', '', 'g') COLLATE "und-x-icu"), 'ς', 'σ') COLLATE "C" < v_text || v_last
         ORDER BY translate(lower(regexp_replace(normalize(u.name, NFKD), '[\u0300-\u036f]', '', 'g') COLLATE "und-x-icu"), 'ς', 'σ') COLLATE "C" LIMIT p_limit));
END
$$;

COMMENT ON FUNCTION centile_store.users_named(text, integer) IS
'Ids of users whose id or name begins with a text, up to a number of each; accents and case of names do not count. Example: SELECT centile_store.users_named(''an'', 100);';
