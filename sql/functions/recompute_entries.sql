-- Sets the entries of some players in some rankings to what the ledger says now. For acts that can only be undone by
-- looking again: void, reset, ban, unban, and imports of players who were ever reset. Under the structure lock and the
-- lane's row lock.
CREATE FUNCTION centile_store.recompute_entries(p_lane smallint, p_ranking_ids bigint[], p_user_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    PERFORM centile_store.place_entries(p_lane, ARRAY(
        SELECT (NULL, NULL, r.id, u.id, l.rank_key, l.tie_key,
                e.score, e.rank_key, e.tie_key, e.reached_at, e.only_zeros, true)::centile_store.entry_change
        FROM centile_store.rankings r
        CROSS JOIN unnest(p_user_ids) AS u (id)
        LEFT JOIN centile_store.leaderboard l ON l.ranking_id = r.id AND l.user_id = u.id
        LEFT JOIN LATERAL centile.entries_from_ledger(r.period_id, NULL, ARRAY[u.id]) e ON true
        WHERE r.id = ANY (p_ranking_ids) AND (l.user_id IS NOT NULL OR e.user_id IS NOT NULL)));
END
$$;

COMMENT ON FUNCTION centile_store.recompute_entries(smallint, bigint[], bigint[]) IS
'Sets entries to what the ledger gives. Example: SELECT centile_store.recompute_entries(0::smallint, ''{1}'', ''{1,2}'');';
