-- Board, kind and label, joined by underscores. If the name is too long for PostgreSQL or already
-- taken ("a-b" and "a_b" are two boards), a shorter name that ends in a digest. The name of a
-- segment always ends in one; underscores replace its characters other than letters and digits.
CREATE OR REPLACE FUNCTION centile_store.archive_name(p_period_id bigint) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_period record;
    v_name   text;
BEGIN
    SELECT p.*, b.slug INTO STRICT v_period
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE p.id = p_period_id;
    v_name := replace(concat_ws('_', v_period.slug, v_period.kind, v_period.label), '-', '_')
        || CASE v_period.segment WHEN '' THEN '' ELSE '_' || regexp_replace(v_period.segment, '[^A-Za-z0-9]+', '_', 'g') END;
    v_name := lower(v_name);
    IF v_period.segment <> '' OR length(v_name) > 63 OR EXISTS (SELECT FROM centile_store.periods o WHERE o.archive_name = v_name AND o.id <> p_period_id) THEN
        v_name := left(v_name, 46) || '_' || left(encode(sha256(convert_to(
            concat_ws(':', v_period.slug, v_period.kind, v_period.label, nullif(v_period.segment, '')), 'UTF8')), 'hex'), 16);
    END IF;
    RETURN v_name;
END
$$;

COMMENT ON FUNCTION centile_store.archive_name(bigint) IS
'The name of a period''s archive in schema centile_archive. Example: SELECT centile_store.archive_name(2);';
