-- One round of the rank indexes of a board: everything that an instance needs to bring its indexes to the current state, in one
-- snapshot.
--
-- p_ranking_ids: the rankings that the instance has indexes of.
-- p_batches: the batch of each lane that all of them have reached.
-- p_revision: the profile revision that the directory has reached.
-- p_snapshot: the snapshot of an earlier round with the same p_ranking_ids, or NULL.
--
-- If the snapshot is still p_snapshot, no transaction has committed since. The function then returns epoch, read_at and snapshot; all
-- other columns are NULL. The snapshot names the session, because a crash ends all sessions, and transaction ids from before a crash
-- may come again. It is NULL on a standby, where pg_current_snapshot() omits transactions in progress.
--
-- The result names the given rankings that their periods still point to, with periods and layouts. rank_keys and tie_keys hold, ranking by
-- ranking, the entries of all user_ids; NULL for a user without an entry. If
-- has_all_changes is false, the indexes must load anew: batches are missing from the feed, or there are more than p_limit, or they
-- list more than p_user_limit users, repeats included. If has_all_profiles is false, the directory must be emptied.
--
-- In plpgsql, which keeps its plans and skips the parts that have nothing to do.
CREATE OR REPLACE FUNCTION centile_store.read_round(
    p_board_id integer, p_ranking_ids bigint[], p_batches bigint[], p_revision bigint, p_limit integer DEFAULT 20000,
    p_user_limit bigint DEFAULT 20000, p_snapshot text DEFAULT NULL,
    OUT epoch text, OUT read_at timestamptz, OUT batches bigint[], OUT revision bigint,
    OUT ranking_ids bigint[], OUT period_ids bigint[], OUT layouts integer[],
    OUT has_all_changes boolean, OUT user_ids bigint[], OUT rank_keys bigint[], OUT tie_keys bigint[],
    OUT has_all_profiles boolean, OUT profile_ids bigint[], OUT external_ids text[], OUT names text[], OUT avatars text[], OUT snapshot text)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_lanes   smallint;
    v_missing bigint;
    v_found   bigint;
    v_users   bigint;
BEGIN
    epoch := centile.epoch();
    read_at := statement_timestamp();
    IF NOT pg_is_in_recovery() THEN
        snapshot := concat_ws(' ', pg_postmaster_start_time(), pg_backend_pid(), pg_current_snapshot());
        IF snapshot = p_snapshot THEN
            RETURN;
        END IF;
    END IF;
    SELECT b.lanes INTO v_lanes FROM centile_store.boards b WHERE b.id = p_board_id;
    batches := centile_store.lane_batches(p_board_id, v_lanes);
    SELECT array_agg(g.id ORDER BY r.place), array_agg(g.period_id ORDER BY r.place), array_agg(g.layout ORDER BY r.place)
    INTO ranking_ids, period_ids, layouts
    FROM unnest(p_ranking_ids) WITH ORDINALITY AS r (id, place)
    JOIN centile_store.rankings g ON g.id = r.id AND g.board_id = p_board_id
    JOIN centile_store.periods p ON p.id = g.period_id AND p.ranking_id = g.id;

    has_all_changes := true;
    IF batches IS DISTINCT FROM p_batches AND p_batches IS NOT NULL THEN
        SELECT sum(b.now - b.known), bool_and(coalesce(b.now >= b.known, false)) INTO v_missing, has_all_changes
        FROM unnest(p_batches, batches) AS b (known, now);
        has_all_changes := coalesce(has_all_changes, false) AND v_missing <= p_limit;
        IF has_all_changes THEN
            SELECT count(*), coalesce(sum(cardinality(c.user_ids)), 0) INTO v_found, v_users
            FROM unnest(p_batches, batches) WITH ORDINALITY AS b (known, now, place)
            JOIN LATERAL (SELECT c.user_ids FROM centile_store.batch_changes c
                          WHERE c.board_id = p_board_id AND c.lane = b.place - 1 AND c.batch > b.known AND c.batch <= b.now) c ON true;
            has_all_changes := v_found = v_missing AND v_users <= p_user_limit;
        END IF;
        IF has_all_changes THEN
            user_ids := ARRAY(
                SELECT DISTINCT u.id
                FROM unnest(p_batches, batches) WITH ORDINALITY AS b (known, now, place)
                JOIN LATERAL (SELECT c.user_ids FROM centile_store.batch_changes c
                              WHERE c.board_id = p_board_id AND c.lane = b.place - 1 AND c.batch > b.known AND c.batch <= b.now) c ON true
                CROSS JOIN unnest(c.user_ids) AS u (id));
        END IF;
        IF has_all_changes AND user_ids <> '{}' AND ranking_ids <> '{}' THEN
            SELECT array_agg(l.rank_key ORDER BY r.place, u.place), array_agg(l.tie_key ORDER BY r.place, u.place)
            INTO rank_keys, tie_keys
            FROM unnest(ranking_ids) WITH ORDINALITY AS r (id, place)
            CROSS JOIN unnest(user_ids) WITH ORDINALITY AS u (id, place)
            LEFT JOIN LATERAL (SELECT l.rank_key, l.tie_key FROM centile_store.leaderboard l
                               WHERE l.ranking_id = r.id AND l.user_id = u.id LIMIT 1) l ON true;
        END IF;
    END IF;

    has_all_profiles := true;
    SELECT v.revision INTO revision FROM centile_store.profile_revision v;
    IF revision > p_revision THEN
        SELECT count(*) <= 1000, array_agg(u.id), array_agg(u.external_id), array_agg(u.name), array_agg(u.avatar)
        INTO has_all_profiles, profile_ids, external_ids, names, avatars
        FROM (SELECT * FROM centile_store.users u WHERE u.profile_revision > p_revision AND u.profile_revision > 0
              ORDER BY u.profile_revision LIMIT 1001) u;
    ELSIF revision < p_revision THEN
        has_all_profiles := false;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.read_round(integer, bigint[], bigint[], bigint, integer, bigint, text) IS
'State of a board and what has changed since the given batches, for rank indexes; time, epoch and snapshot alone if p_snapshot is current. Example: SELECT batches, layouts FROM centile_store.read_round(1, ''{1}'', NULL, NULL);';
