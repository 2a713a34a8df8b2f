-- All archive names come from here. Statements check with archive_state that the period still has
-- this archive. "source" is what a statement reads: its relation or, for the id of a closed board, its
-- results; a period of a template has none of its own. tiebreak and tie_key: expressions for a row "a" of the archive.
CREATE OR REPLACE FUNCTION centile_store.archive_of(p_period_id bigint)
RETURNS TABLE (archive_name text, source text, players bigint, board_id integer, score_order text, ties text, mode text, tiebreak text, tie_key text)
LANGUAGE sql STABLE
AS $$
    SELECT p.archive_name, CASE WHEN b.is_template THEN format('(SELECT * FROM centile_store.closed_results r WHERE r.closed_id = %s)', coalesce(c.id, 0)) ELSE format('centile_archive.%I', p.archive_name) END,
           coalesce(c.players, p.archive_players), coalesce(c.board_id, p.board_id), b.score_order, b.ties, b.mode,
           CASE b.ties WHEN 'second' THEN 'a.tiebreak' ELSE 'NULL::bigint' END,
           CASE WHEN b.ties <> 'second' THEN 'centile.tie_key(a.reached_at)' ELSE format('centile.rank_key(a.tiebreak, %L)', b.tiebreak_order) END
    FROM (SELECT) one
    LEFT JOIN LATERAL centile_store.closed_row(p_period_id) c ON true
    JOIN centile_store.periods p ON p.id = coalesce(c.period_id, p_period_id) AND p.archive_dropped_at IS NULL AND (c.id IS NOT NULL OR p.archive_name IS NOT NULL)
    JOIN centile_store.boards b ON b.id = p.board_id
$$;

COMMENT ON FUNCTION centile_store.archive_of(bigint) IS
'The archive of a period and the rules of its board. Example: SELECT * FROM centile_store.archive_of(2);';
