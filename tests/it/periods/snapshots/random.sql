-- Random acts on a board with two lanes, around the cut-offs of snapshots. Each snapshot must be what
-- the ledger gives as of its cut-off, and each verification must find nothing.
SELECT centile.create_board('arena', '{"periods": ["all_time", "week"], "lanes": 2, "snapshots": "day"}');
SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 60) n));
SELECT centile.ensure_ledger_months('2024-01-01', '2024-01-31'), centile.ensure_ledger_months();

-- A score now or, as in an import, in the past; a void, a reset, a ban or an unban.
CREATE PROCEDURE testing.act(p_acts integer) LANGUAGE plpgsql AS $$
DECLARE
    v_user text;
BEGIN
    FOR v_n IN 1..p_acts LOOP
        v_user := 'p' || 1 + floor(random() * 60)::integer;
        BEGIN
            CASE floor(random() * 10)::integer
                WHEN 6 THEN
                    PERFORM centile.void_score('arena', t.id)
                    FROM (SELECT t.id FROM centile_store.score_transactions t
                          WHERE t.kind = 'score' AND NOT EXISTS (SELECT FROM centile_store.score_transactions v WHERE v.voids_id = t.id)
                          ORDER BY random() LIMIT 1) t;
                WHEN 7 THEN PERFORM centile.reset_player('arena', v_user);
                WHEN 8 THEN PERFORM centile.ban_user('arena', v_user, random() < 0.5);
                ELSE
                    PERFORM testing.record_scores(1, (centile.lane_hash(v_user) % 2)::smallint, ARRAY[v_user], ARRAY[floor(random() * 20)::bigint - 5],
                        p_times => ARRAY[CASE WHEN random() < 0.3 THEN '2024-01-01Z'::timestamptz + random() * interval '28 days' ELSE clock_timestamp() END]);
            END CASE;
        EXCEPTION WHEN SQLSTATE 'CB404' OR SQLSTATE 'CB409' THEN
            -- A player without scores, for example.
            NULL;
        END;
    END LOOP;
END
$$;

CREATE PROCEDURE testing.take_snapshot(p_n integer) LANGUAGE plpgsql AS $$
DECLARE
    v_id     bigint;
    v_at     timestamptz;
    v_point  record;
    v_period record;
    v_new    bigint[];
BEGIN
    CALL testing.act(20);
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
    VALUES (1, 'snapshot', 'day-' || p_n, '-infinity', clock_timestamp()) RETURNING id INTO v_id;
    CALL testing.act(4);
    v_at := centile_store.cut_off_period(v_id);
    CALL testing.act(4);
    PERFORM centile_store.build_archive(v_id), centile_store.compare_archive(v_id), centile_store.finish_close(v_id, v_at);
    ASSERT NOT EXISTS (SELECT FROM centile_store.differences(v_id)), 'the snapshot agrees with the ledger';
    v_point := centile_store.begin_verification(1);
    CALL testing.act(4);
    FOR v_period IN SELECT p.id, p.ranking_id FROM centile_store.periods p WHERE p.ranking_id IS NOT NULL LOOP
        ASSERT NOT EXISTS (SELECT FROM centile_store.differences(v_period.id, 10, false)), 'new rows agree with the ledger';
        ASSERT NOT EXISTS (SELECT FROM centile_store.differences(v_period.id, 10, true)), 'the ranking agrees with the ledger';
        -- Damage of every player with an act since the last verification is found.
        v_new := ARRAY(SELECT l.user_id FROM centile_store.leaderboard l
                       WHERE l.ranking_id = v_period.ranking_id AND l.user_id IN (
                           SELECT t.user_id FROM centile_store.score_transactions t, centile_store.verified_rankings v
                           WHERE v.ranking_id = l.ranking_id AND t.id > v.ledger_end));
        UPDATE centile_store.leaderboard l SET only_zeros = NOT l.only_zeros WHERE l.ranking_id = v_period.ranking_id AND l.user_id = ANY (v_new);
        ASSERT v_new = '{}' OR (SELECT d.total FROM centile_store.differences(v_period.id, 1, false) d) = cardinality(v_new), 'damage is found';
        UPDATE centile_store.leaderboard l SET only_zeros = NOT l.only_zeros WHERE l.ranking_id = v_period.ranking_id AND l.user_id = ANY (v_new);
        PERFORM centile_store.end_verification(v_period.ranking_id, true, NULL, v_point.ledger_end, v_point.batches, v_point.times);
    END LOOP;
END
$$;
