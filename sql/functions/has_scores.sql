-- Whether a user has scores in the ledger: on these boards, or on any if p_boards is NULL.
CREATE OR REPLACE FUNCTION centile_store.has_scores(p_user_id bigint, p_boards text[]) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT FROM centile_store.boards b
        WHERE (p_boards IS NULL OR b.slug = ANY (p_boards))
          AND EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = b.id AND t.user_id = p_user_id AND t.kind = 'score'))
$$;

COMMENT ON FUNCTION centile_store.has_scores(bigint, text[]) IS
'Whether a user has scores on some boards. Example: SELECT centile_store.has_scores(1, ''{main}'');';
