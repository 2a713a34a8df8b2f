-- All archive names come from here. Statements check with archive_state that the period still has
-- this archive. tiebreak and tie_key: expressions for a row "a" of the archive.
CREATE OR REPLACE FUNCTION centile_store.archive_of(p_period_id bigint)
RETURNS TABLE (archive_name text, players bigint, board_id integer, score_order text, ties text, mode text, tiebreak text, tie_key text)
LANGUAGE sql STABLE
AS $$
    SELECT p.archive_name, p.archive_players, b.id, b.score_order, b.ties, b.mode,
           CASE b.ties WHEN 'second' THEN 'a.tiebreak' ELSE 'NULL::bigint' END,
           CASE WHEN b.ties <> 'second' THEN 'centile.tie_key(a.reached_at)' ELSE format('centile.rank_key(a.tiebreak, %L)', b.tiebreak_order) END
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.id = p_period_id AND p.archive_name IS NOT NULL AND p.archive_dropped_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.archive_of(bigint) IS
'The archive of a period and the rules of its board. Example: SELECT * FROM centile_store.archive_of(2);';
