-- Changes of entries between two batches of each lane, ordered by lane and batch. has_all is false if
-- the log lacks a batch, or if there are more than p_limit batches or p_change_limit changes. A
-- worker of a cluster (sql/cluster) has some of the lanes; p_known and p_now are NULL for others.
-- Without p_ranking_ids, of all rankings.
CREATE OR REPLACE FUNCTION centile_store.logged_changes(
    p_board_id integer, p_ranking_ids bigint[], p_known bigint[], p_now bigint[], p_limit integer, p_change_limit bigint,
    OUT has_all boolean, OUT ranking_ids bigint[], OUT user_ids bigint[], OUT rank_keys bigint[], OUT tie_keys bigint[])
LANGUAGE plpgsql STABLE
-- Most rounds read a few batches of a large table, however small it was when PostgreSQL made the
-- plans.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_missing bigint;
BEGIN
    SELECT sum(b.now - b.known), bool_and(coalesce(b.now >= b.known, num_nonnulls(b.now, b.known) = 0)) INTO v_missing, has_all FROM unnest(p_known, p_now) AS b (known, now);
    has_all := has_all AND v_missing <= p_limit;
    IF has_all THEN
        -- Counts first: the arrays may be long.
        SELECT count(*) = v_missing AND coalesce(sum(c.changes), 0) <= p_change_limit INTO has_all
        FROM unnest(p_known, p_now) WITH ORDINALITY AS b (known, now, place)
        CROSS JOIN LATERAL (SELECT c.changes FROM centile_store.batch_log c
                            WHERE c.board_id = p_board_id AND c.lane = b.place - 1 AND c.batch > b.known AND c.batch <= b.now OFFSET 0) c;
    END IF;
    IF has_all THEN
        -- Nested loops keep the order of the batches. A user's batches are all of one lane.
        SELECT array_agg(e.ranking_id), array_agg(e.user_id), array_agg(e.rank_key), array_agg(e.tie_key)
        INTO ranking_ids, user_ids, rank_keys, tie_keys
        FROM unnest(p_known, p_now) WITH ORDINALITY AS b (known, now, place)
        CROSS JOIN LATERAL (SELECT c.ranking_ids, c.user_ids, c.rank_keys, c.tie_keys FROM centile_store.batch_log c
                            WHERE c.board_id = p_board_id AND c.lane = b.place - 1 AND c.batch > b.known AND c.batch <= b.now ORDER BY c.batch) c
        CROSS JOIN LATERAL unnest(c.ranking_ids, c.user_ids, c.rank_keys, c.tie_keys) AS e (ranking_id, user_id, rank_key, tie_key)
        WHERE p_ranking_ids IS NULL OR e.ranking_id = ANY (p_ranking_ids);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.logged_changes(integer, bigint[], bigint[], bigint[], integer, bigint) IS
'Changed entries of some rankings between two batches of each lane, ordered by lane and batch. Example: SELECT has_all FROM centile_store.logged_changes(1, ''{1}'', ''{0,0}'', ''{0,0}'', 10, 10);';
