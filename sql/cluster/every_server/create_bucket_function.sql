-- All buckets are in one table, so one statement serves them all. Only the function that changes rows
-- names a table to change; it finds rows by their whole key.
CREATE OR REPLACE FUNCTION centile_store.create_bucket_function(p_name text, p_arguments text, p_returns text, p_statement text, p_volatility text DEFAULT 'STABLE')
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION centile_store.%I(p_bucket smallint, %s) RETURNS %s LANGUAGE plpgsql %s AS %L',
        p_name, p_arguments, p_returns, p_volatility, format(E'\n#variable_conflict use_column\nDECLARE\n    v_count bigint;\nBEGIN\n%s\nEND\n',
            format(p_statement, CASE p_volatility WHEN 'STABLE' THEN '(SELECT * FROM centile_store.leaderboard_bucket t WHERE t.bucket = p_bucket) AS bucket_rows'
                                                  ELSE 'centile_store.leaderboard_bucket' END)));
END
$$;

COMMENT ON FUNCTION centile_store.create_bucket_function(text, text, text, text, text) IS
'Creates or replaces a function that reads or changes a bucket.';
