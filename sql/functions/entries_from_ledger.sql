-- The truth about a period: its entries as the ledger gives them, as of a batch number per lane (element n for lane n - 1;
-- all of the ledger without). Live writing, void, unban, archive, audit and rebuild must all agree with it, and tests
-- compare them with it.
--
-- An entry is a function of the set of its events, not of their order of arrival: of the events in the period's time, those
-- that are not voided and not before the player's last reset in it; none while the player is banned.
--   sum:    their sum; reached with the latest that had points (with only zeros: the first).
--   best:   the one with the best (score, tiebreak), the earliest among equals.
--   latest: the one with the greatest (time, id).
CREATE FUNCTION centile.entries_from_ledger(p_period_id bigint, p_batches bigint[] DEFAULT NULL, p_user_ids bigint[] DEFAULT NULL)
RETURNS TABLE (user_id bigint, score bigint, rank_key bigint, tie_key bigint, reached_at timestamptz, only_zeros boolean)
LANGUAGE sql STABLE
AS $$
    WITH target AS (
        SELECT p.board_id, p.starts_at, p.ends_at, b.mode, b.score_order
        FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
        WHERE p.id = p_period_id
    ), act AS (
        SELECT a.*
        FROM target t
        JOIN centile_store.score_transactions a ON a.board_id = t.board_id AND a.kind <> 'score'
        WHERE (p_user_ids IS NULL OR a.user_id = ANY (p_user_ids))
          AND (p_batches IS NULL OR a.batch <= p_batches[a.lane + 1])
    ), last_reset AS (
        SELECT a.user_id, max(a.occurred_at) AS at
        FROM act a JOIN target t ON a.occurred_at >= t.starts_at AND a.occurred_at < t.ends_at
        WHERE a.kind = 'reset'
        GROUP BY a.user_id
    ), banned AS (
        SELECT a.user_id FROM act a
        WHERE a.kind IN ('ban', 'unban')
        GROUP BY a.user_id
        HAVING (max(ARRAY[a.id, (a.kind = 'ban')::integer]))[2] = 1
    ), event AS (
        SELECT s.user_id, s.points, s.occurred_at, s.id, t.mode, t.score_order,
               centile.rank_key(s.points, t.score_order) AS rank_key, centile.tie_key(s.occurred_at, s.tiebreak) AS tie_key
        FROM target t
        JOIN centile_store.score_transactions s
            ON s.board_id = t.board_id AND s.occurred_at >= t.starts_at AND s.occurred_at < t.ends_at AND s.kind = 'score'
        LEFT JOIN last_reset r ON r.user_id = s.user_id
        WHERE (p_user_ids IS NULL OR s.user_id = ANY (p_user_ids))
          AND (p_batches IS NULL OR s.batch <= p_batches[s.lane + 1])
          AND (r.at IS NULL OR s.occurred_at >= r.at)
          AND s.id NOT IN (SELECT a.voids_id FROM act a WHERE a.kind = 'void')
          AND s.user_id NOT IN (SELECT b.user_id FROM banned b)
    ), entry AS (
        SELECT e.user_id, e.mode, e.score_order,
               sum(e.points) FILTER (WHERE e.mode = 'sum') AS total,
               max(e.occurred_at) FILTER (WHERE e.mode = 'sum' AND e.points <> 0) AS last_scored_at,
               min(e.occurred_at) FILTER (WHERE e.mode = 'sum') AS first_at,
               max(ARRAY[e.rank_key, e.tie_key]) FILTER (WHERE e.mode = 'best') AS best,
               max(ARRAY[-centile.tie_key(e.occurred_at), e.id, e.rank_key, e.tie_key]) FILTER (WHERE e.mode = 'latest') AS latest,
               bool_and(e.points = 0) AS only_zeros
        FROM event e
        GROUP BY e.user_id, e.mode, e.score_order
    ), keyed AS (
        SELECT e.user_id, e.score_order, e.only_zeros,
               CASE e.mode WHEN 'sum' THEN centile.rank_key(e.total::bigint, e.score_order) WHEN 'best' THEN e.best[1] ELSE e.latest[3] END AS rank_key,
               CASE e.mode WHEN 'sum' THEN centile.tie_key(coalesce(e.last_scored_at, e.first_at)) WHEN 'best' THEN e.best[2] ELSE e.latest[4] END AS tie_key
        FROM entry e
    )
    SELECT k.user_id, centile.rank_key(k.rank_key, k.score_order), k.rank_key, k.tie_key, centile.tie_key_time(k.tie_key), k.only_zeros
    FROM keyed k
$$;

COMMENT ON FUNCTION centile.entries_from_ledger(bigint, bigint[], bigint[]) IS
'All entries of a period (or those of some users), from the ledger as of a batch number per lane. Example: SELECT e.* FROM centile.periods p CROSS JOIN LATERAL centile.entries_from_ledger(p.period_id) e WHERE p.board = ''main'' AND p.kind = ''all_time'' ORDER BY e.rank_key DESC, e.tie_key DESC LIMIT 3;';
GRANT EXECUTE ON FUNCTION centile.entries_from_ledger(bigint, bigint[], bigint[]) TO centile_reader;
