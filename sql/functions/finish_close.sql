-- The last step of closing: freezes the top, writes the message to the outbox and releases the
-- ranking. Returns false and changes nothing if an import has cancelled the cut-off or
-- the tiers of the board have changed meanwhile.
CREATE OR REPLACE FUNCTION centile_store.finish_close(p_period_id bigint, p_cut_off_at timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE
-- Does not wait long for a session that changes a profile; the next attempt continues from here.
SET lock_timeout = '10s'
SET timezone = 'UTC'
AS $$
DECLARE
    v_period   centile_store.periods;
    v_top      bytea;
    v_tiers    text[];
    v_changes  jsonb;
    v_league   jsonb;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    -- A segment has the tiers of its whole period, which is closed.
    v_tiers := (SELECT CASE v_period.segment WHEN '' THEN b.tiers ELSE w.tiers END
                FROM centile_store.boards b
                LEFT JOIN centile_store.periods w ON w.board_id = b.id AND w.kind = v_period.kind AND w.label = v_period.label AND w.segment = ''
                WHERE b.id = v_period.board_id);
    -- Before all locks, because it reads two archives. Snapshots and segments have no message,
    -- and a template has no players.
    v_changes := CASE WHEN v_period.kind <> 'snapshot' AND v_period.segment = '' AND NOT (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN centile_store.tier_changes(p_period_id, v_tiers) END;
    v_league := centile_store.league_message(v_period);
    -- Before the other locks: a session that applies many batches may hold this one for seconds.
    PERFORM centile_store.lock_buckets(v_period.board_id);
    -- Prevents name changes, because the top must not keep the name of an erased player. Comes before
    -- the structure lock, so that writers of the board do not wait for a name change.
    PERFORM FROM centile_store.profile_revision FOR SHARE;
    v_top := centile_store.freeze_top(p_period_id);
    -- The players' own ids.
    SELECT v_changes || jsonb_object_agg(l.list, (
        SELECT coalesce(jsonb_agg(r.row || jsonb_build_object('user_id', u.external_id) ORDER BY r.place), '[]')
        FROM jsonb_array_elements(v_changes -> l.list) WITH ORDINALITY AS r (row, place)
        JOIN centile_store.users u ON u.id = (r.row ->> 'user_id')::bigint))
    INTO v_changes FROM unnest('{promotions,demotions}'::text[]) AS l (list) WHERE v_changes IS NOT NULL;
    PERFORM centile_store.lock_structure(v_period.board_id, true);
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id FOR UPDATE;
    IF v_period.state = 'closed' THEN
        RAISE EXCEPTION 'the period is already closed' USING ERRCODE = 'CB409';
    ELSIF v_period.cut_off_at IS DISTINCT FROM p_cut_off_at
          OR v_period.segment = '' AND v_tiers <> (SELECT b.tiers FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
        RETURN false;
    ELSIF v_period.archive_players IS NULL THEN
        RAISE EXCEPTION 'the archive has not been built and compared' USING ERRCODE = 'CB409';
    END IF;
    UPDATE centile_store.rankings g SET released_at = clock_timestamp()
    WHERE g.id = v_period.ranking_id OR (g.period_id = p_period_id AND g.players_of <> g.board_id AND g.has_bucket_rows);
    UPDATE centile_store.periods
    SET state = 'closed', ranking_id = NULL, shape = centile_store.ranking_shape(v_period.ranking_id), archive_revision = 1, frozen_top = v_top, tiers = v_tiers, closed_at = clock_timestamp()
    WHERE id = p_period_id;
    PERFORM centile_store.move_league(v_period);
    INSERT INTO centile_store.outbox (board_id, period_id, kind, payload)
    SELECT b.id, p_period_id, 'period_closed', jsonb_build_object(
        'type', 'period_closed', 'board', b.slug,
        'period', jsonb_build_object(
            'name', v_period.kind || ':' || v_period.label, 'kind', v_period.kind, 'label', v_period.label, 'state', 'closed',
            'starts_at', v_period.starts_at, 'ends_at', v_period.ends_at),
        'players', v_period.archive_players,
        'top', (SELECT coalesce(jsonb_agg(
                    r.row - '{internal_id,rank_key,tie_key,user_name,avatar}'::text[]
                    || jsonb_build_object('name', r.row -> 'user_name')
                    || CASE WHEN v_changes IS NULL THEN '{}' ELSE jsonb_build_object('tier', centile.tier_of(
                        v_tiers, b.score_order, (r.row ->> 'score')::bigint, (r.row ->> 'rank')::bigint, v_period.archive_players)) END ORDER BY r.place), '[]')
                FROM jsonb_array_elements(convert_from(v_top, 'UTF8')::jsonb -> 'rows') WITH ORDINALITY AS r (row, place)))
        || CASE WHEN v_changes IS NULL THEN '{}' ELSE jsonb_build_object('tiers', v_changes) END
        || CASE WHEN v_league IS NULL THEN '{}' ELSE jsonb_build_object('league', v_league) END
    FROM centile_store.boards b WHERE b.id = v_period.board_id AND v_period.kind <> 'snapshot' AND v_period.segment = '' AND NOT b.is_template;
    IF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
        PERFORM centile_store.announce_boards(v_period);
    END IF;
    PERFORM centile_store.list_named_players(p_period_id);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.finish_close(bigint, timestamptz) IS
'Closes a period whose archive has been built and compared. Example: SELECT c.at IS NOT NULL AS is_cut_off, centile_store.build_archive(2), centile_store.compare_archive(2), centile_store.finish_close(2, c.at) FROM (SELECT centile_store.cut_off_period(2) AS at) c;';
