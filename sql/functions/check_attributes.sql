-- Also records new values. p_changes: the values to set, and null for attributes to remove.
-- Attributes by which no board has segments can be removed, whether the user has them or not, so
-- that a removal can be repeated. p_boards: the boards of a limited key, which may change only
-- attributes by which these boards have segments; '{}' for all boards.
CREATE OR REPLACE FUNCTION centile_store.check_attributes(p_changes jsonb, p_boards text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_change record;
BEGIN
    IF jsonb_typeof(p_changes) <> 'object' THEN
        RAISE EXCEPTION 'attributes must be a JSON object of texts and nulls' USING ERRCODE = 'CB422', DETAIL = 'attributes';
    END IF;
    -- In the order of names, so that two callers cannot deadlock.
    FOR v_change IN SELECT c.key, c.value, c.value #>> '{}' AS text FROM jsonb_each(p_changes) c ORDER BY c.key COLLATE "C" LOOP
        IF NOT EXISTS (SELECT FROM centile_store.boards b WHERE v_change.key = ANY (b.segments) AND (p_boards = '{}' OR b.slug = ANY (p_boards)))
           AND (v_change.text IS NOT NULL
                OR EXISTS (SELECT FROM centile_store.boards b WHERE v_change.key = ANY (b.segments))) THEN
            RAISE EXCEPTION '% has segments by %', CASE p_boards WHEN '{}' THEN 'no board' ELSE 'no board of this key' END, quote_literal(v_change.key)
                USING ERRCODE = 'CB422', DETAIL = 'attributes', HINT = CASE p_boards WHEN '{}' THEN 'Create a board with segments by this attribute first.' ELSE 'Use a key for a board with segments by this attribute.' END;
        ELSIF jsonb_typeof(v_change.value) NOT IN ('string', 'null') THEN
            RAISE EXCEPTION 'attribute % must be a text', v_change.key USING ERRCODE = 'CB422', DETAIL = 'attributes';
        ELSIF NOT v_change.text ~ '^[^\u0001-\u001f\u007f-\u009f]{1,64}$' THEN
            RAISE EXCEPTION 'attribute % must have 1 to 64 characters without control characters', v_change.key
                USING ERRCODE = 'CB422', DETAIL = 'attributes';
        ELSIF v_change.text IS NOT NULL AND NOT EXISTS (
                SELECT FROM centile_store.attribute_values v WHERE v.attribute = v_change.key AND v.value = v_change.text) THEN
            -- Values are counted one session at a time.
            PERFORM pg_advisory_xact_lock(hashtextextended('attribute ' || v_change.key, 0));
            IF (SELECT count(*) FROM centile_store.attribute_values v WHERE v.attribute = v_change.key AND v.value <> v_change.text) >= 1000 THEN
                RAISE EXCEPTION 'attribute % already has 1,000 values, and % is another', v_change.key, quote_literal(v_change.text)
                    USING ERRCODE = 'CB422', DETAIL = 'attributes';
            END IF;
            INSERT INTO centile_store.attribute_values (attribute, value) VALUES (v_change.key, v_change.text)
            ON CONFLICT ON CONSTRAINT attribute_values_pkey DO NOTHING;
        END IF;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.check_attributes(jsonb, text[]) IS
'Checks changes to the attributes of a user. Example: SELECT centile_store.check_attributes(''{}'');';
