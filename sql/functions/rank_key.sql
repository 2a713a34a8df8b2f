-- Not STRICT: PostgreSQL would not inline it.
CREATE OR REPLACE FUNCTION centile.rank_key(p_score bigint, p_order text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_order WHEN 'asc' THEN -p_score ELSE p_score END;

COMMENT ON FUNCTION centile.rank_key(bigint, text) IS
'The score, negated on boards where smaller is better, so that larger is always better. Example: SELECT centile.rank_key(61250, ''asc'');';
GRANT EXECUTE ON FUNCTION centile.rank_key(bigint, text) TO centile_reader;
