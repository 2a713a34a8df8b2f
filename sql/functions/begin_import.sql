-- Until the import has ended, none of the board's periods is closed. Unfinished closings are
-- cancelled, except those of segments whose whole period is closed: these accept no more scores. An
-- interrupted import of the same file continues under its number; an import from standard input
-- gets a new number. The session holds a lock until it ends, which shows that the import is
-- running.
CREATE OR REPLACE FUNCTION centile_store.begin_import(p_board_id integer, p_source text, p_actor text DEFAULT session_user) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_import_id bigint;
    v_owner     integer := centile_store.owner_of(p_board_id);
BEGIN
    PERFORM centile_store.check_written(centile_store.lock_structure(v_owner, true));
    UPDATE centile_store.periods p SET cut_off_at = NULL
    WHERE p.board_id = v_owner AND p.state = 'open' AND p.cut_off_at IS NOT NULL
      AND EXISTS (SELECT FROM centile_store.periods w
                  WHERE w.board_id = v_owner AND w.kind = p.kind AND w.label = p.label AND w.segment = '' AND w.state = 'open');
    SELECT i.id INTO v_import_id FROM centile_store.imports i
    WHERE i.board_id = v_owner AND i.source = p_source AND i.source <> 'stdin' AND i.ended_at IS NULL AND i.abandoned_at IS NULL
      AND NOT centile_store.is_locked(1128615509, i.id)
    -- The end of another import of the file may be ending this one.
    ORDER BY i.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF v_import_id IS NULL THEN
        INSERT INTO centile_store.imports (board_id, source) VALUES (v_owner, p_source) RETURNING id INTO v_import_id;
    ELSE
        UPDATE centile_store.imports SET started_at = clock_timestamp() WHERE id = v_import_id;
    END IF;
    -- Does not wait: any session may hold an advisory lock, and this one holds the structure lock.
    IF NOT pg_try_advisory_lock(1128615509, centile_store.lock_key(v_import_id)) THEN
        RAISE EXCEPTION 'another session holds the lock of import %', v_import_id USING ERRCODE = 'CB409', HINT = 'See pg_locks, classid 1128615509.';
    END IF;
    PERFORM centile_store.note_act(p_actor, 'import', p_board_id, NULL, jsonb_build_object('source', p_source, 'import_id', v_import_id), 'imports');
    RETURN v_import_id;
END
$$;

COMMENT ON FUNCTION centile_store.begin_import(integer, text, text) IS
'Announces an import of a board and returns its number. Example: SELECT centile_store.begin_import(1, ''scores.csv'') IS NOT NULL AS is_announced;';
