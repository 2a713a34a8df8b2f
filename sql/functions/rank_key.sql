-- A score as a number of which larger is always better.
-- Not STRICT: with CASE in it, it could not become part of the query that calls it.
CREATE OR REPLACE FUNCTION centile.rank_key(p_score bigint, p_order text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_order WHEN 'asc' THEN -p_score ELSE p_score END;

COMMENT ON FUNCTION centile.rank_key(bigint, text) IS
'The score, negated on boards where smaller is better. Example: SELECT centile.rank_key(61250, ''asc'');';
GRANT EXECUTE ON FUNCTION centile.rank_key(bigint, text) TO centile_reader;
