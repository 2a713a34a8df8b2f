-- The function runs statements on the bucket table that its argument p_bucket names; they may use
-- v_count. It has a branch per table, found by binary search, and each branch keeps its own plan. A
-- statement with a table name inserted at run time would be planned at every call. A statement on
-- the parent table would lock all hundred. Functions that only read have a branch for bucket 100,
-- which stands for the view leaderboard.
CREATE OR REPLACE FUNCTION centile_store.create_bucket_function(p_name text, p_arguments text, p_returns text, p_statement text, p_volatility text DEFAULT 'STABLE')
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_count    integer := CASE p_volatility WHEN 'STABLE' THEN 101 ELSE 100 END;
    v_branches text[] := ARRAY(
        SELECT format(p_statement, 'centile_store.' || centile_store.bucket_table(n::smallint)) FROM generate_series(0, v_count - 1) AS n);
    v_from     integer[] := ARRAY(SELECT n FROM generate_series(0, v_count - 1) AS n);
BEGIN
    -- Combines adjacent branches until one is left.
    WHILE v_count > 1 LOOP
        FOR i IN 1..v_count / 2 LOOP
            v_branches[i] := format(E'IF p_bucket < %s THEN\n%s\nELSE\n%s\nEND IF;',
                v_from[2 * i], v_branches[2 * i - 1], v_branches[2 * i]);
            v_from[i] := v_from[2 * i - 1];
        END LOOP;
        IF v_count % 2 = 1 THEN
            v_branches[v_count / 2 + 1] := v_branches[v_count];
            v_from[v_count / 2 + 1] := v_from[v_count];
        END IF;
        v_count := (v_count + 1) / 2;
    END LOOP;
    EXECUTE format('CREATE OR REPLACE FUNCTION centile_store.%I(p_bucket smallint, %s) RETURNS %s LANGUAGE plpgsql %s AS %L',
        p_name, p_arguments, p_returns, p_volatility, format(E'\n#variable_conflict use_column\nDECLARE\n    v_count bigint;\nBEGIN\n%s\nEND\n', v_branches[1]));
END
$$;

COMMENT ON FUNCTION centile_store.create_bucket_function(text, text, text, text, text) IS
'Creates or replaces a function with a branch per bucket table. Example: SELECT centile_store.create_bucket_function(''bucket_size'', ''p_ranking_id bigint'', ''bigint'', ''RETURN (SELECT count(*) FROM %s WHERE ranking_id = p_ranking_id);'');';
