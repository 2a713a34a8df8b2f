-- One round of the rank indexes of a board: everything that an instance needs to bring its indexes
-- to the current state, in one snapshot. In plpgsql, which keeps its plans and skips idle parts.
--
-- p_ranking_ids: the rankings that the instance has indexes of. p_batches: the batch of each lane
-- that all of them have reached. p_revision: the profile revision of the directory. p_snapshot: the
-- snapshot of an earlier round with the same p_ranking_ids, or NULL.
--
-- If the snapshot is still p_snapshot, no transaction has committed since: the function returns
-- epoch, read_at and snapshot, and NULL for the rest. The snapshot names the session, because
-- transaction ids may repeat after a crash. It is NULL on a standby, where pg_current_snapshot()
-- omits transactions in progress.
--
-- changed_*, rank_keys, tie_keys: the changes of entries since p_batches, ordered by lane and batch.
-- The keys of a removed entry are NULL. If has_all_changes is false, the indexes reload: the log
-- lacks a batch, or there are more than p_limit batches or p_change_limit changes.
CREATE OR REPLACE FUNCTION centile_store.read_round(
    p_board_id integer, p_ranking_ids bigint[], p_batches bigint[], p_revision bigint, p_limit integer DEFAULT 20000,
    p_change_limit bigint DEFAULT 500000, p_snapshot text DEFAULT NULL,
    OUT epoch text, OUT read_at timestamptz, OUT batches bigint[], OUT revision bigint,
    OUT ranking_ids bigint[], OUT period_ids bigint[],
    OUT has_all_changes boolean, OUT changed_rankings bigint[], OUT changed_users bigint[], OUT rank_keys bigint[], OUT tie_keys bigint[],
    OUT has_all_profiles boolean, OUT profile_ids bigint[], OUT external_ids text[], OUT names text[], OUT avatars text[], OUT snapshot text)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_lanes smallint;
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
    SELECT array_agg(g.id ORDER BY r.place), array_agg(g.period_id ORDER BY r.place)
    INTO ranking_ids, period_ids
    FROM unnest(p_ranking_ids) WITH ORDINALITY AS r (id, place)
    JOIN centile_store.current_rankings g ON g.id = r.id AND g.board_id = p_board_id;

    has_all_changes := true;
    IF batches IS DISTINCT FROM p_batches AND p_batches IS NOT NULL THEN
        SELECT * INTO has_all_changes, changed_rankings, changed_users, rank_keys, tie_keys
        FROM centile_store.logged_changes(p_board_id, coalesce(ranking_ids, '{}'), p_batches, batches, p_limit, p_change_limit);
    END IF;

    SELECT * INTO revision, has_all_profiles, profile_ids, external_ids, names, avatars FROM centile_store.changed_profiles(p_revision);
END
$$;

COMMENT ON FUNCTION centile_store.read_round(integer, bigint[], bigint[], bigint, integer, bigint, text) IS
'State of a board and the changes since the given batches, for rank indexes; only time, epoch and snapshot if p_snapshot is current. Example: SELECT batches FROM centile_store.read_round(1, ''{1}'', NULL, NULL);';
