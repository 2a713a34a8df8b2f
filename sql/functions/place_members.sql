-- Takes the fullest cohort that is neither full nor locked, or creates one. It never waits for another
-- session, so there are no deadlocks; of a division and band, at most as many cohorts are not full as
-- sessions commit at once, one per lane.
CREATE OR REPLACE FUNCTION centile_store.place_members(p_league centile_store.leagues, p_user_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_group  record;
    v_cohort centile_store.league_cohorts;
    v_taken  integer;
BEGIN
    FOR v_group IN
        SELECT coalesce(CASE WHEN p.period_id = m.period_id THEN p.division ELSE p.next_division END, 1::smallint) AS division,
               CASE WHEN p_league.fill = 'form' AND p.period_id = m.period_id THEN p.band
                    WHEN p_league.fill = 'form' AND p.period_id = p_league.closed_id THEN p.next_band ELSE 0::smallint END AS band,
               array_agg(m.user_id ORDER BY m.seq) AS users
        FROM centile_store.league_members m
        LEFT JOIN centile_store.league_players p ON p.league_id = m.league_id AND p.user_id = m.user_id
        WHERE m.league_id = p_league.id AND m.user_id = ANY (p_user_ids) AND m.period_id = p_league.period_id AND m.division IS NULL
        GROUP BY 1, 2 ORDER BY 1, 2
    LOOP
        WHILE v_group.users <> '{}' LOOP
            SELECT * INTO v_cohort FROM centile_store.league_cohorts c
            WHERE c.league_id = p_league.id AND c.period_id = p_league.period_id AND c.division = v_group.division AND c.band = v_group.band AND c.members < p_league.size
            ORDER BY c.members DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                INSERT INTO centile_store.league_cohorts (league_id, period_id, division, band, members)
                VALUES (p_league.id, p_league.period_id, v_group.division, v_group.band, 0) RETURNING * INTO v_cohort;
            END IF;
            v_taken := least(p_league.size - v_cohort.members, cardinality(v_group.users));
            UPDATE centile_store.league_cohorts c SET members = c.members + v_taken WHERE c.id = v_cohort.id;
            UPDATE centile_store.league_members m SET cohort_id = v_cohort.id, division = v_group.division
            WHERE m.league_id = p_league.id AND m.user_id = ANY (v_group.users[1:v_taken]) AND m.period_id = p_league.period_id;
            v_group.users := v_group.users[v_taken + 1:];
        END LOOP;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.place_members(centile_store.leagues, bigint[]) IS
'Gives waiting players of the current period of a league their cohorts. Example: SELECT centile_store.place_members(l, ''{1}'') FROM centile_store.leagues l WHERE l.name = ''months'';';
