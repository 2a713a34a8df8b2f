-- Updates up to p_limit players of one lane who have ledger rows between two ids, in the order of
-- their user ids after p_after_user. Call it again with last_user until players is 0. It uses all
-- of their current ledger rows.
CREATE OR REPLACE FUNCTION centile_store.catch_up(
    p_ranking_id bigint, p_lane smallint, p_after bigint, p_up_to bigint, p_after_user bigint DEFAULT 0, p_limit integer DEFAULT 2000,
    OUT players bigint, OUT last_user bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_users bigint[];
BEGIN
    SELECT array_agg(x.user_id), count(*), max(x.user_id) INTO v_users, players, last_user
    FROM (SELECT DISTINCT t.user_id
          FROM centile_store.rankings g
          JOIN centile_store.score_transactions t ON t.board_id = g.board_id
          WHERE g.id = p_ranking_id AND t.id > p_after AND t.id <= p_up_to AND t.lane = p_lane AND t.user_id > p_after_user
          ORDER BY t.user_id LIMIT p_limit) x;
    IF players > 0 THEN
        PERFORM centile_store.place_entries(p_lane, centile_store.entry_changes(ARRAY[p_ranking_id], v_users));
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.catch_up(bigint, smallint, bigint, bigint, bigint, integer) IS
'Updates players of an unfinished ranking from the ledger. Example: SELECT r.ranking_id IS NOT NULL AS is_begun, centile_store.fill_entries(r.ranking_id), centile_store.fill_buckets(r.ranking_id), (centile_store.catch_up(r.ranking_id, 0::smallint, r.ledger_end, r.ledger_end + 10)).players FROM centile_store.begin_rebuild(1) r;';
