-- Changes the entries in the periods that hold p_voids_at or now, or in all rankings for a ban or
-- unban. The caller holds the lane and has checked that the act makes sense. A reset separates what
-- came before from what comes after, so its time is later than every event of the lane.
CREATE OR REPLACE FUNCTION centile_store.record_act(
    p_board centile_store.boards, p_lane centile_store.board_lanes, p_user_id bigint, p_kind text, p_reason text,
    p_voids_id bigint DEFAULT NULL, p_voids_at timestamptz DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_at       timestamptz := greatest(clock_timestamp(), p_lane.last_at + CASE p_kind WHEN 'reset' THEN interval '1 microsecond' ELSE interval '0' END);
    v_id       bigint;
    v_rankings bigint[];
    v_closed   bigint[];
BEGIN
    INSERT INTO centile_store.score_transactions (board_id, user_id, kind, reason, voids_id, occurred_at, lane, batch)
    VALUES (p_board.id, p_user_id, p_kind, p_reason, p_voids_id, v_at, p_lane.lane, p_lane.batch + 1)
    RETURNING id INTO v_id;

    UPDATE centile_store.players b
    SET banned = CASE WHEN p_kind IN ('ban', 'unban') THEN p_kind = 'ban' ELSE b.banned END, was_reset = b.was_reset OR p_kind = 'reset'
    WHERE b.board_id = p_board.id AND b.user_id = p_user_id AND p_kind <> 'void';
    INSERT INTO centile_store.players (board_id, user_id, lane, banned, was_reset)
    SELECT p_board.id, p_user_id, p_lane.lane, p_kind = 'ban', p_kind = 'reset' WHERE NOT FOUND AND p_kind <> 'void';

    IF p_kind IN ('void', 'reset') THEN
        PERFORM centile_store.require_rankings(p_board, p_lane.board_id, coalesce(p_voids_at, v_at));
        SELECT array_agg(p.ranking_id) FILTER (WHERE p.ranking_id IS NOT NULL), array_agg(p.period_id) FILTER (WHERE p.ranking_id IS NULL OR p.is_cut_off)
        INTO v_rankings, v_closed
        FROM centile_store.player_periods_at(p_board, p_user_id, coalesce(p_voids_at, v_at)) p;
    ELSE
        -- A closed period does not change, and the archive of a period that is being closed lacks
        -- this act.
        SELECT array_agg(g.id), array_agg(p.id) FILTER (WHERE p.cut_off_at IS NOT NULL) INTO v_rankings, v_closed
        FROM centile_store.periods p
        JOIN centile_store.rankings g ON g.period_id = p.id AND g.players_of = p_board.id AND (g.id = p.ranking_id OR p_board.is_template)
        WHERE p.board_id = p_lane.board_id AND p.ranking_id IS NOT NULL
          AND (p.segment = ''
               -- Reads all segments of the player once, then looks up only the periods of these.
               OR p.segment IN (SELECT m.segment FROM centile_store.segment_members m WHERE m.board_id = p_board.id AND m.user_id = p_user_id)
                  AND p.segment IN (SELECT centile_store.segments_at(p_board.id, p_user_id, p.ends_at)));
    END IF;
    PERFORM centile_store.mark_corrected(v_closed, p_board.id);
    PERFORM centile_store.write_act(p_board.id, p_lane, v_at, p_user_id, centile_store.entry_changes(v_rankings, ARRAY[p_user_id]));
    PERFORM centile_store.note_act(p_actor, p_kind, p_board.id, NULL,
        jsonb_strip_nulls(jsonb_build_object('transaction_id', v_id, 'voids', p_voids_id, 'reason', p_reason)), NULL, p_user_id);
    RETURN v_id;
END
$$;

COMMENT ON FUNCTION centile_store.record_act(centile_store.boards, centile_store.board_lanes, bigint, text, text, bigint, timestamptz, text) IS
'Writes a void, reset, ban or unban into the ledger and updates the player''s entries. Called by centile.void_score, reset_player and ban_user. Example: SELECT centile_store.record_act(b, centile_store.lock_lane(b, ''ann''), 1, ''reset'', ''asked for it'') FROM centile_store.boards b WHERE b.slug = ''main'';';
