-- Defines the entries of a period. Live writes, void, unban, archive, audit and rebuild must agree
-- with it. An entry is a function of the set of its events, not of their order of arrival. These
-- are the events within the period that are not voided and not before the player's last reset in
-- it. A banned player has no entry. sum: their sum, reached at the latest with points not 0 (with
-- only zeros: the first). best: the one with the best (score, tiebreak), the earliest among equals.
-- latest: the one with the greatest (time, id). With ties `second`, the tie key of a sum is the sum of
-- the tiebreaks or, if they are replaced, that of the greatest (time, id) with one.
CREATE OR REPLACE FUNCTION centile.entries_from_ledger(p_period_id bigint, p_batches bigint[] DEFAULT NULL, p_user_ids bigint[] DEFAULT NULL, p_board_id integer DEFAULT NULL)
RETURNS TABLE (user_id bigint, score bigint, rank_key bigint, tie_key bigint, reached_at timestamptz, only_zeros boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY EXECUTE centile_store.entries_query(p_period_id,
        CASE WHEN p_batches IS NOT NULL THEN '$1::bigint[]' END, CASE WHEN p_user_ids IS NOT NULL THEN '$2::bigint[]' END, CASE WHEN p_board_id IS NOT NULL THEN '$3::integer' END)
    USING p_batches, p_user_ids, p_board_id;
END
$$;

COMMENT ON FUNCTION centile.entries_from_ledger(bigint, bigint[], bigint[], integer) IS
'All entries of a period (or those of some users), from the ledger as of a batch number per lane. A period of a template needs the id of one of its boards. Example: SELECT e.* FROM centile.periods p CROSS JOIN LATERAL centile.entries_from_ledger(p.period_id) e WHERE p.board = ''main'' AND p.kind = ''all_time'' ORDER BY e.rank_key DESC, e.tie_key DESC LIMIT 3;';
