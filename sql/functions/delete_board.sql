-- At once nobody finds the board, and its name is free. centile_store.remove_deleted removes its rows
-- later. A key for this board alone is revoked, because it must not become one for all boards or for
-- the next board of this name. Raises the structure revision, so that running batches start again.
CREATE OR REPLACE FUNCTION centile.delete_board(p_slug text, p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_slug, true);
    v_owner integer := centile_store.owner_of(v_board.id);
    v_other text;
BEGIN
    PERFORM centile_store.lock_names();
    PERFORM centile_store.lock_buckets(v_owner);
    PERFORM centile_store.lock_structure(v_owner, true);
    v_board := centile_store.board_named(p_slug, true);
    IF centile_store.owner_of(v_board.id) <> v_owner THEN
        RAISE EXCEPTION 'board % has just changed', p_slug USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    -- As centile_store.set_sources.
    PERFORM pg_advisory_xact_lock(1128615508, -3);
    v_other := (SELECT min(b.slug) FROM centile_store.combination_sources s JOIN centile_store.boards b ON b.id = s.board_id WHERE s.source_board_id = v_board.id);
    IF v_other IS NOT NULL THEN
        RAISE EXCEPTION 'board % is a source of board %', p_slug, v_other USING ERRCODE = 'CB409', HINT = 'Remove it from the sources first.';
    ELSIF EXISTS (SELECT FROM centile_store.imports i WHERE i.board_id = v_board.id AND i.ended_at IS NULL AND i.abandoned_at IS NULL) THEN
        RAISE EXCEPTION 'board % has an open import', p_slug USING ERRCODE = 'CB409', HINT = 'Let it end, or run centile import --abandon.';
    ELSIF (SELECT t.boards FROM centile_store.templates t WHERE t.board_id = v_board.id FOR UPDATE) > 0 THEN
        RAISE EXCEPTION 'template % still has boards', (SELECT t.name FROM centile_store.templates t WHERE t.board_id = v_board.id) USING ERRCODE = 'CB409', HINT = 'Delete its boards first.';
    END IF;
    INSERT INTO centile_store.deletions (board_id, owner_id) VALUES (v_board.id, v_owner);
    IF v_owner = v_board.id THEN
        DELETE FROM centile_store.templates t WHERE t.board_id = v_board.id;
        DELETE FROM centile_store.webhooks w WHERE w.board_id = v_board.id;
        DELETE FROM centile_store.combination_sources s WHERE s.board_id = v_board.id;
        UPDATE centile_store.leagues l SET deleted_at = clock_timestamp() WHERE l.board_id = v_board.id AND l.deleted_at IS NULL;
        DELETE FROM centile_store.combinations c WHERE c.board_id = v_board.id;
        UPDATE centile_store.periods p SET state = 'closed', ranking_id = NULL WHERE p.board_id = v_board.id AND p.ranking_id IS NOT NULL;
        UPDATE centile_store.boards b SET slug = '-' || b.id, deleted_at = clock_timestamp(), rolling = '{}', snapshots = NULL WHERE b.id = v_board.id;
    ELSE
        DELETE FROM centile_store.template_boards t WHERE t.id = v_board.id;
        UPDATE centile_store.rankings g SET released_at = clock_timestamp() WHERE g.board_id = v_owner AND g.players_of = v_board.id AND g.has_bucket_rows;
        UPDATE centile_store.templates t SET boards = t.boards - 1 WHERE t.board_id = v_owner;
    END IF;
    UPDATE centile_store.api_keys k
    SET revoked_at = CASE WHEN k.boards = ARRAY[p_slug] THEN coalesce(k.revoked_at, clock_timestamp()) ELSE k.revoked_at END,
        boards = CASE WHEN k.boards = ARRAY[p_slug] THEN k.boards ELSE array_remove(k.boards, p_slug) END
    WHERE k.boards @> ARRAY[p_slug];
    PERFORM centile_store.note_act(p_actor, 'delete_board', NULL, '{"deleted": false}', '{"deleted": true}', p_slug);
    RETURN v_board.id;
END
$$;

COMMENT ON FUNCTION centile.delete_board(text, text) IS
'Deletes a board, or a template without boards, with all scores, and returns its id. Example: SELECT centile.delete_board(''ladder'') > 0 AS is_deleted;';
