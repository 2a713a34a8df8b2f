-- p_first_layout has either bounds, or expected_points. The latter gives 100 buckets of equal width in
-- whole points; the last bucket takes the remainder.
CREATE OR REPLACE FUNCTION centile_store.first_bounds(p_first_layout jsonb) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT
AS $$
DECLARE
    v_points bigint := p_first_layout ->> 'expected_points';
    v_bounds bigint[];
BEGIN
    IF (SELECT count(*) FROM jsonb_object_keys(p_first_layout)) <> 1 THEN
        RAISE EXCEPTION 'must have either bounds or expected_points' USING ERRCODE = 'CB422', DETAIL = 'first_layout';
    END IF;
    IF v_points IS NOT NULL THEN
        IF v_points < 100 THEN
            RAISE EXCEPTION 'must be at least 100, one for each bucket' USING ERRCODE = 'CB422', DETAIL = 'first_layout.expected_points';
        END IF;
        RETURN ARRAY(SELECT n * (v_points / 100) FROM generate_series(1, 99) AS n);
    END IF;
    v_bounds := ARRAY(SELECT b::bigint FROM jsonb_array_elements_text(p_first_layout -> 'bounds') WITH ORDINALITY AS e (b, place) ORDER BY place);
    IF cardinality(v_bounds) NOT BETWEEN 1 AND 99 OR array_position(v_bounds, NULL) IS NOT NULL OR v_bounds[1] = -9223372036854775808
       OR v_bounds <> ARRAY(SELECT DISTINCT b FROM unnest(v_bounds) AS b ORDER BY b) THEN
        RAISE EXCEPTION 'must be 1 to 99 scores, strictly ascending, all above the least 64-bit integer'
            USING ERRCODE = 'CB422', DETAIL = 'first_layout.bounds';
    END IF;
    RETURN v_bounds;
END
$$;

COMMENT ON FUNCTION centile_store.first_bounds(jsonb) IS
'The scores between the first buckets of a new ranking. Example: SELECT centile_store.first_bounds(''{"expected_points": 5000}'');';
