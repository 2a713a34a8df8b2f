-- Up to p_limit rows of deleted leagues and boards per call; call it until it returns 0. Killed at any moment, the
-- next call goes on. SECURITY DEFINER, because the ledger is append-only for the service.
CREATE OR REPLACE FUNCTION centile_store.remove_deleted(p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    v_deletion centile_store.deletions;
    v_removed  bigint;
    v_table    text;
    v_archive  record;
BEGIN
    v_removed := centile_store.remove_leagues(p_limit);
    IF v_removed > 0 THEN
        RETURN v_removed;
    END IF;
    SELECT * INTO v_deletion FROM centile_store.deletions d ORDER BY d.deleted_at, d.board_id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    FOREACH v_table IN ARRAY '{corrected_boards,score_transactions,transaction_ids,quarantine,inbox_failures,segment_members,players,batch_log,fillings,outbox}'::text[] LOOP
        -- The tables have no name in common for a row.
        EXECUTE format('DELETE FROM centile_store.%1$I t USING (SELECT x.tableoid, x.ctid FROM centile_store.%1$I x WHERE x.board_id = $1 LIMIT $2) o
                        WHERE t.tableoid = o.tableoid AND t.ctid = o.ctid', v_table) USING v_deletion.board_id, p_limit;
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
    END LOOP;
    IF v_deletion.owner_id <> v_deletion.board_id THEN
        -- A closing or refresh may be writing results of the board.
        PERFORM FROM centile_store.cut_offs c JOIN centile_store.periods p ON p.id = c.period_id WHERE p.board_id = v_deletion.owner_id ORDER BY c.period_id FOR UPDATE OF c;
        DELETE FROM centile_store.closed_results r USING centile_store.closed_boards c WHERE c.board_id = v_deletion.board_id AND r.closed_id = c.id;
        DELETE FROM centile_store.closed_boards c WHERE c.board_id = v_deletion.board_id;
        DELETE FROM centile_store.rankings g USING centile_store.periods p
        WHERE p.board_id = v_deletion.owner_id AND g.period_id = p.id AND g.players_of = v_deletion.board_id AND NOT g.has_bucket_rows;
        DELETE FROM centile_store.deletions d WHERE d.board_id = v_deletion.board_id;
        RETURN 1;
    END IF;
    -- An archive at a time.
    SELECT p.id, p.archive_name INTO v_archive FROM centile_store.periods p WHERE p.board_id = v_deletion.board_id AND p.archive_name IS NOT NULL LIMIT 1;
    IF FOUND THEN
        PERFORM centile_store.remove_archive(v_archive.id, v_archive.archive_name);
        UPDATE centile_store.periods p SET archive_name = NULL, frozen_top = NULL, archive_dropped_at = coalesce(p.archive_dropped_at, clock_timestamp()) WHERE p.id = v_archive.id;
        RETURN 1;
    END IF;
    UPDATE centile_store.rankings g SET released_at = clock_timestamp() WHERE g.board_id = v_deletion.board_id AND g.released_at IS NULL;
    IF EXISTS (SELECT FROM centile_store.rankings g WHERE g.board_id = v_deletion.board_id) THEN
        RETURN centile_store.remove_released(p_limit);
    END IF;
    PERFORM centile_store.remove_structure(v_deletion.board_id);
    RETURN 1;
END
$$;

COMMENT ON FUNCTION centile_store.remove_deleted(integer) IS
'Deletes some rows of deleted boards and returns their number; 0 when nothing is left. Example: SELECT centile_store.remove_deleted();';
