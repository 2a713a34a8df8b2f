-- The fixed list of bucket tables: the only names that enter a statement at run time.
CREATE OR REPLACE FUNCTION centile_store.bucket_table(p_bucket smallint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 'leaderboard_bucket_' || to_char(p_bucket, 'FM00');

COMMENT ON FUNCTION centile_store.bucket_table(smallint) IS
'Name of a bucket''s table. Example: SELECT centile_store.bucket_table(7::smallint);';
