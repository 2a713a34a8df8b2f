-- Each gets its own ranking. Takes the structure lock exclusively: call it before any other lock.
CREATE OR REPLACE FUNCTION centile_store.open_periods(p_board_id integer, p_times timestamptz[]) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board     centile_store.boards;
    v_period    record;
    v_period_id bigint;
    v_opened    integer := 0;
BEGIN
    PERFORM centile_store.lock_for_opening(p_board_id);
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    PERFORM centile_store.check_written(v_board);
    FOR v_period IN
        SELECT DISTINCT k.kind, p.label, p.starts_at, p.ends_at
        FROM unnest(v_board.periods) AS k (kind)
        CROSS JOIN (SELECT DISTINCT t FROM unnest(p_times) AS t) AS x (at)
        -- Computes no calendar for a time inside a known period.
        CROSS JOIN LATERAL centile_store.period_holding(p_board_id, k.kind, x.at, v_board.time_zone) AS p
        WHERE NOT EXISTS (SELECT FROM centile_store.periods o
                          WHERE o.board_id = p_board_id AND o.kind = k.kind AND o.segment = '' AND o.starts_at <= x.at AND x.at < o.ends_at)
        ORDER BY p.starts_at, k.kind
    LOOP
        INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state)
        VALUES (p_board_id, v_period.kind, v_period.label, v_period.starts_at, v_period.ends_at, 'closed')
        RETURNING id INTO v_period_id;
        UPDATE centile_store.periods SET state = 'open', ranking_id = centile_store.create_ranking(p_board_id, v_period_id) WHERE id = v_period_id;
        UPDATE centile_store.leagues l SET period_id = v_period_id, next_from = v_period.starts_at
        WHERE l.board_id = p_board_id AND l.kind = v_period.kind AND l.period_id IS NULL AND l.next_from <= v_period.starts_at AND l.deleted_at IS NULL;
        v_opened := v_opened + 1;
    END LOOP;
    -- On a cluster, lock_for_opening sets it.
    PERFORM set_config('centile.left_out', '', true);
    RETURN v_opened;
END
$$;

COMMENT ON FUNCTION centile_store.open_periods(integer, timestamptz[]) IS
'Opens the periods of a board that hold these times, and returns the number of newly opened ones. Example: SELECT centile_store.open_periods(board_id, ARRAY[timestamptz ''2024-02-01 12:00Z'']) FROM centile.boards WHERE slug = ''main'';';
