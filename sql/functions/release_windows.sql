-- Releases windows that ended five minutes ago and are not archived, so that readers can finish
-- paging. Also releases windows of lengths that the board no longer keeps, and with p_all every
-- window. The caller holds the board's bucket lock, and its structure lock exclusively.
CREATE OR REPLACE FUNCTION centile_store.release_windows(p_board_id integer, p_all boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_ids bigint[] := ARRAY(SELECT u.period_id FROM centile_store.unused_windows(p_all) u WHERE u.board_id = p_board_id);
BEGIN
    -- The rankings first, while the periods still name them.
    UPDATE centile_store.rankings g SET released_at = clock_timestamp()
    FROM centile_store.periods p WHERE p.id = ANY (v_ids) AND g.id = p.ranking_id;
    UPDATE centile_store.periods p SET state = 'closed', ranking_id = NULL, closed_at = clock_timestamp(), archive_differences = NULL
    WHERE p.id = ANY (v_ids);
    RETURN cardinality(v_ids);
END
$$;

COMMENT ON FUNCTION centile_store.release_windows(integer, boolean) IS
'Releases rolling windows of a board that are no longer used, and returns their number. Example: SELECT centile_store.lock_structure(1, true) IS NOT NULL AS is_locked, centile_store.release_windows(1);';
