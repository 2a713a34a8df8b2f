-- The fixed list of bucket tables: the only names that enter a statement at run time. A ranking
-- without bucket rows has one bucket, 100: all its players, by the view leaderboard.
CREATE OR REPLACE FUNCTION centile_store.bucket_table(p_bucket smallint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE p_bucket WHEN 100 THEN 'leaderboard' ELSE 'leaderboard_bucket_' || to_char(p_bucket, 'FM00') END;

COMMENT ON FUNCTION centile_store.bucket_table(smallint) IS
'Name of a bucket''s table. Example: SELECT centile_store.bucket_table(7::smallint);';
