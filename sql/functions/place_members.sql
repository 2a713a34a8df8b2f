-- In the order of p_user_ids. Takes the newest cohort that is neither full nor locked, and creates
-- others only if there is none. It never waits for another session, so there are no deadlocks; of a
-- division and band, at most as many cohorts are not full as sessions commit at once, one per lane.
CREATE OR REPLACE FUNCTION centile_store.place_members(p_league centile_store.leagues, p_user_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_group   record;
    v_cohort  centile_store.league_cohorts;
    v_cohorts bigint[];
    v_taken   integer;
    v_left    integer;
BEGIN
    FOR v_group IN
        SELECT coalesce(CASE WHEN p.period_id = p_league.period_id THEN p.division ELSE p.next_division END, 1::smallint) AS division,
               CASE WHEN p_league.fill = 'form' AND p.period_id = p_league.period_id THEN p.band
                    WHEN p_league.fill = 'form' AND p.period_id = p_league.closed_id THEN p.next_band ELSE 0::smallint END AS band,
               array_agg(u.id ORDER BY u.n) AS users
        FROM unnest(p_user_ids) WITH ORDINALITY AS u (id, n)
        -- LIMIT looks up each player: a plan made for an empty table would join with all players.
        LEFT JOIN LATERAL (SELECT * FROM centile_store.league_players p WHERE p.league_id = p_league.id AND p.user_id = u.id LIMIT 1) p ON true
        GROUP BY 1, 2 ORDER BY 1, 2
    LOOP
        -- The cohort of each player.
        v_cohorts := '{}';
        v_left := cardinality(v_group.users);
        WHILE v_left > 0 LOOP
            SELECT * INTO v_cohort FROM centile_store.league_cohorts c
            WHERE c.league_id = p_league.id AND c.period_id = p_league.period_id AND c.division = v_group.division AND c.band = v_group.band AND NOT c.is_full
            ORDER BY c.id DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
            EXIT WHEN NOT FOUND;
            v_taken := least(p_league.size - v_cohort.members, v_left);
            UPDATE centile_store.league_cohorts c SET members = c.members + v_taken, is_full = c.members + v_taken = p_league.size WHERE c.id = v_cohort.id;
            v_cohorts := v_cohorts || array_fill(v_cohort.id, ARRAY[v_taken]);
            v_left := v_left - v_taken;
        END LOOP;
        WITH new AS (
            INSERT INTO centile_store.league_cohorts (league_id, period_id, division, band, members, is_full)
            SELECT p_league.id, p_league.period_id, v_group.division, v_group.band, least(p_league.size, v_left - p_league.size * n), v_left - p_league.size * n >= p_league.size
            FROM generate_series(0, (v_left + p_league.size - 1) / p_league.size - 1) AS n ORDER BY n
            RETURNING id, members)
        SELECT v_cohorts || coalesce(array_agg(n.id ORDER BY n.id), '{}') INTO v_cohorts FROM new n CROSS JOIN LATERAL generate_series(1, n.members);
        INSERT INTO centile_store.league_members AS m (league_id, user_id, period_id, cohort_id, division)
        SELECT p_league.id, u.id, p_league.period_id, u.cohort_id, v_group.division
        FROM unnest(v_group.users, v_cohorts) WITH ORDINALITY AS u (id, cohort_id, n) ORDER BY u.n
        ON CONFLICT ON CONSTRAINT league_members_pkey DO UPDATE
        SET cohort_id = excluded.cohort_id, division = excluded.division, division_after = NULL;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.place_members(centile_store.leagues, bigint[]) IS
'Gives players of the current period of a league their cohorts. Example: SELECT centile_store.place_members(l, ''{}'') FROM centile_store.leagues l WHERE l.name = ''months'';';
