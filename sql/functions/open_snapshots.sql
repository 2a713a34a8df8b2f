-- Opens those whose time has come, so that they are closed next: those since the board's last
-- snapshot, or since its creation. Opens one if there is no earlier snapshot, and never more than
-- the board keeps. No score enters a snapshot, so this needs no lock that writers take. The label
-- names the period whose end it is: week-2024-01-15.
CREATE OR REPLACE FUNCTION centile_store.open_snapshots() RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_board  record;
    v_last   timestamptz;
    v_most   integer;
    v_period record;
    v_opened integer := 0;
BEGIN
    FOR v_board IN
        SELECT b.id, b.snapshots, b.time_zone, b.kept_archives, b.created_at FROM centile_store.boards b
        WHERE b.snapshots IS NOT NULL
          AND EXISTS (SELECT FROM centile_store.periods p WHERE p.board_id = b.id AND p.kind = 'all_time')
        ORDER BY b.id
    LOOP
        v_last := (SELECT max(p.ends_at) FROM centile_store.periods p WHERE p.board_id = v_board.id AND p.kind = 'snapshot');
        v_most := CASE WHEN v_last IS NULL THEN 1 ELSE (v_board.kept_archives ->> 'snapshot')::integer END;
        SELECT * INTO v_period FROM centile.period_before(v_board.snapshots, statement_timestamp(), v_board.time_zone);
        LOOP
            EXIT WHEN v_period.ends_at <= coalesce(v_last, v_board.created_at) OR v_most <= 0;
            INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
            VALUES (v_board.id, 'snapshot', v_board.snapshots || '-' || v_period.label, '-infinity', v_period.ends_at)
            ON CONFLICT ON CONSTRAINT periods_label_key DO NOTHING;
            v_opened := v_opened + 1;
            v_most := v_most - 1;
            SELECT * INTO v_period FROM centile.period_before(v_board.snapshots, v_period.starts_at, v_board.time_zone);
        END LOOP;
    END LOOP;
    RETURN v_opened;
END
$$;

COMMENT ON FUNCTION centile_store.open_snapshots() IS
'Opens the snapshots that are due and returns their number. Example: SELECT centile_store.open_snapshots();';
GRANT EXECUTE ON FUNCTION centile_store.open_snapshots() TO centile_operator;
