-- The events of abandoned imports stay. Afterwards the board's periods can be closed.
CREATE OR REPLACE FUNCTION centile.abandon_imports(p_board text, p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board     centile_store.boards := centile_store.board_named(p_board);
    v_owner     integer := centile_store.owner_of(v_board.id);
    v_running   text;
    v_abandoned text[];
BEGIN
    PERFORM centile_store.lock_structure(v_owner, true);
    SELECT min(i.source) INTO v_running FROM centile_store.imports i
    WHERE i.board_id = v_owner AND i.ended_at IS NULL AND i.abandoned_at IS NULL AND centile_store.is_locked(1128615509, i.id);
    IF v_running IS NOT NULL THEN
        RAISE EXCEPTION 'an import of % into board % is running', quote_literal(v_running), p_board
            USING ERRCODE = 'CB409', HINT = 'Stop the import first.';
    END IF;
    WITH abandoned AS (
        UPDATE centile_store.imports i SET abandoned_at = clock_timestamp()
        WHERE i.board_id = v_owner AND i.ended_at IS NULL AND i.abandoned_at IS NULL
        RETURNING i.id, i.source)
    SELECT coalesce(array_agg(a.source ORDER BY a.id), '{}') INTO v_abandoned FROM abandoned a;
    IF v_abandoned <> '{}' THEN
        PERFORM centile_store.note_act(p_actor, 'abandon_imports', v_board.id, NULL, jsonb_build_object('sources', v_abandoned), 'imports');
    END IF;
    RETURN cardinality(v_abandoned);
END
$$;

COMMENT ON FUNCTION centile.abandon_imports(text, text) IS
'Abandons the imports of a board that were interrupted, and returns their number. Example: SELECT centile.abandon_imports(''main'');';
