-- The caller holds the structure lock and the lane of these players. Players with their first
-- standing in the current period get their cohorts; those in a later one wait until it is current,
-- because they do not know their divisions yet. A row that was written for an idle player, before an
-- import cancelled the closing, does not make a member.
CREATE OR REPLACE FUNCTION centile_store.join_league(p_board_id integer, p_entries centile_store.logged_entries) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_league  centile_store.leagues;
    v_period  centile_store.periods;
    v_users   bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(p_entries.was_rank_keys, p_entries.rank_keys) AS e (was, now) WHERE e.was IS NULL AND e.now IS NOT NULL) THEN
        RETURN;
    END IF;
    SELECT * INTO v_league FROM centile_store.leagues l WHERE l.board_id = p_board_id AND l.deleted_at IS NULL;
    FOR v_period IN
        SELECT * FROM centile_store.periods p
        WHERE p.board_id = p_board_id AND p.kind = v_league.kind AND p.segment = '' AND p.starts_at >= v_league.next_from AND p.cut_off_at IS NULL
    LOOP
        SELECT array_agg(e.user_id ORDER BY e.n) INTO v_users
        FROM unnest(p_entries.ranking_ids, p_entries.user_ids, p_entries.was_rank_keys, p_entries.rank_keys) WITH ORDINALITY AS e (ranking_id, user_id, was, now, n)
        WHERE e.ranking_id = v_period.ranking_id AND e.was IS NULL AND e.now IS NOT NULL
          -- Looks up each player: a plan made for an empty table would join with all members.
          AND (SELECT true FROM centile_store.league_members m
               WHERE m.league_id = v_league.id AND m.user_id = e.user_id AND m.period_id = v_period.id AND (m.cohort_id IS NOT NULL OR m.division IS NULL)) IS NULL;
        IF v_period.id = v_league.period_id THEN
            PERFORM centile_store.place_members(v_league, v_users);
        ELSE
            INSERT INTO centile_store.league_members (league_id, user_id, period_id)
            SELECT v_league.id, u.id, v_period.id FROM unnest(v_users) WITH ORDINALITY AS u (id, n) ORDER BY u.n;
        END IF;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.join_league(integer, centile_store.logged_entries) IS
'Adds players to the league of a board with their first standings in a period of it. Example: SELECT centile_store.join_league(1, (''{1}'', ''{1}'', ''{5}'', ''{5}'', ''{6}'', ''{6}''));';
