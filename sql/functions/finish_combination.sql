-- The second step of a refresh: readers get the new view from now on. Takes its locks in the order of
-- centile_store.refresh_archive. p_actor is NULL for a scheduled refresh, which the audit log omits.
CREATE OR REPLACE FUNCTION centile_store.finish_combination(p_board_id integer, p_actor text, p_seconds double precision,
    OUT period_id bigint, OUT revision integer, OUT players bigint)
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '10s'
AS $$
#variable_conflict use_column
DECLARE
    v_state     centile_store.combinations;
    v_last_at   timestamptz;
    v_was       record;
BEGIN
    SELECT * INTO STRICT v_state FROM centile_store.combinations WHERE board_id = p_board_id FOR UPDATE;
    IF v_state.next_view IS NULL THEN
        RAISE EXCEPTION 'no ranking of the board has been built' USING ERRCODE = 'CB409';
    END IF;
    EXECUTE format('SELECT count(*), max(reached_at) FROM centile_archive.%I', v_state.next_view) INTO players, v_last_at;
    PERFORM FROM centile_store.profile_revision FOR SHARE;
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state)
    VALUES (p_board_id, 'all_time', 'all_time', '-infinity', 'infinity', 'closed')
    ON CONFLICT ON CONSTRAINT periods_label_key DO NOTHING;
    SELECT p.id, p.archive_name, p.archive_revision, p.archive_players INTO STRICT v_was
    FROM centile_store.periods p WHERE p.board_id = p_board_id;
    period_id := v_was.id;
    INSERT INTO centile_store.named_players AS n (period_id, user_ids) VALUES (v_was.id, '{}')
    ON CONFLICT ON CONSTRAINT named_players_pkey DO UPDATE SET user_ids = n.user_ids;
    UPDATE centile_store.periods
    SET archive_name = v_state.next_view, archive_players = finish_combination.players, archive_last_at = v_last_at, archive_differences = 0,
        cut_off_at = v_state.next_as_of, closed_at = clock_timestamp(),
        tiers = (SELECT b.tiers FROM centile_store.boards b WHERE b.id = p_board_id)
    WHERE id = v_was.id;
    UPDATE centile_store.periods SET archive_revision = archive_revision + 1, frozen_top = centile_store.freeze_top(v_was.id)
    WHERE id = v_was.id
    RETURNING archive_revision INTO revision;
    PERFORM centile_store.list_named_players(v_was.id);
    UPDATE centile_store.combinations c
    SET epoch = centile.epoch(), as_of = c.next_as_of, sources = c.next_sources, source_batches = c.next_batches, ledger_start = coalesce(nullif(c.ledger_end, 0), c.next_end), ledger_end = c.next_end,
        duration = make_interval(secs => p_seconds), failures = 0, failed_at = NULL, failure = NULL,
        next_view = NULL, next_as_of = NULL, next_sources = NULL, next_batches = NULL, next_end = NULL,
        old_views = array_remove(c.old_views || v_was.archive_name, NULL)
    WHERE c.board_id = p_board_id;
    PERFORM centile_store.note_act(p_actor, 'refresh', p_board_id,
        jsonb_build_object('revision', v_was.archive_revision, 'players', v_was.archive_players, 'sources', centile_store.shown_sources(v_state.sources)),
        jsonb_build_object('revision', finish_combination.revision, 'players', finish_combination.players, 'sources', centile_store.shown_sources(v_state.next_sources)), 'all_time')
    WHERE p_actor IS NOT NULL;
END
$$;

COMMENT ON FUNCTION centile_store.finish_combination(integer, text, double precision) IS
'Replaces the ranking of a combined board by the one that centile_store.build_combination has built, and returns its period, revision and players. Example: SELECT centile_store.build_combination(4), centile_store.finish_combination(4, ''dora'', 1.5);';
