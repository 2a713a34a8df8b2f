-- Much cheaper than unnesting the array and building a new one.
CREATE OR REPLACE FUNCTION centile_store.add_at(p_counts anyarray, p_places integer[], p_changes anyarray) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
    FOR i IN 1..cardinality(p_places) LOOP
        p_counts[p_places[i]] := p_counts[p_places[i]] + p_changes[i];
    END LOOP;
    RETURN p_counts;
END
$$;

COMMENT ON FUNCTION centile_store.add_at(anyarray, integer[], anyarray) IS
'An array of counts with changes added at some places. Example: SELECT centile_store.add_at(''{5,0,7}''::bigint[], ''{1,3}'', ''{1,-2}'');';
