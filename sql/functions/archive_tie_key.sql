-- An archive holds only the time of a tie key. The tiebreak is that of the ledger's event that the
-- entry comes from. Voided events count too: the caller may mean an earlier entry.
CREATE OR REPLACE FUNCTION centile_store.archive_tie_key(p_board_id integer, p_mode text, p_user_id bigint, p_score bigint, p_reached_at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN centile.tie_key(p_reached_at, (
        SELECT t.tiebreak FROM centile_store.score_transactions t
        WHERE t.board_id = p_board_id AND t.user_id = p_user_id AND t.occurred_at = p_reached_at AND t.kind = 'score' AND t.points = p_score
        ORDER BY CASE p_mode WHEN 'latest' THEN t.id END DESC, coalesce(t.tiebreak, 0) DESC
        LIMIT 1));
END
$$;

COMMENT ON FUNCTION centile_store.archive_tie_key(integer, text, bigint, bigint, timestamptz) IS
'Tie key of an entry of an archive, with the tiebreak from the ledger. Example: SELECT centile_store.archive_tie_key(1, ''best'', 1, 120, ''2024-01-15 10:00Z'');';
