-- p_tied: members of the same rank. Only they are affected by the rule ties of the league.
CREATE OR REPLACE FUNCTION centile_store.league_move(p_league centile_store.leagues, p_division smallint, p_rank bigint, p_tied bigint, p_ranked bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE
RETURN (p_division + CASE
    WHEN p_rank IS NULL THEN CASE WHEN (p_league).idle = 'relegate' AND p_division > 1 THEN -1 ELSE 0 END
    WHEN p_rank + CASE (p_league).ties WHEN 'down' THEN p_tied - 1 ELSE 0 END <= (p_league).promote AND p_division < cardinality((p_league).divisions) THEN 1
    WHEN p_rank + CASE (p_league).ties WHEN 'down' THEN p_tied - 1 ELSE 0 END > p_ranked - (p_league).relegate AND p_division > 1 THEN -1
    ELSE 0 END)::smallint;

COMMENT ON FUNCTION centile_store.league_move(centile_store.leagues, smallint, bigint, bigint, bigint) IS
'The division after a period of a member with this rank among p_ranked members; a NULL rank means no score. Example: SELECT centile_store.league_move(l, 1::smallint, 1, 1, 3) FROM centile_store.leagues l WHERE l.name = ''months'';';
