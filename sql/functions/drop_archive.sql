-- Retention, in two steps so that no reader fails. First, without p_drop, the call clears the
-- period's archive and frozen top. A later transaction, with p_drop, drops the archive. The ledger
-- stays.
CREATE OR REPLACE FUNCTION centile_store.drop_archive(p_period_id bigint, p_drop boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Does not wait for a reader, such as a session left open; the next attempt drops the archive.
SET lock_timeout = '200ms'
AS $$
DECLARE
    v_period centile_store.periods;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state <> 'closed' THEN
        RAISE EXCEPTION 'the period is not closed' USING ERRCODE = 'CB409';
    ELSIF NOT p_drop THEN
        UPDATE centile_store.periods SET frozen_top = NULL, archive_dropped_at = clock_timestamp()
        WHERE id = p_period_id AND archive_dropped_at IS NULL;
    ELSIF v_period.archive_dropped_at IS NULL THEN
        RAISE EXCEPTION 'the archive still answers for the period' USING ERRCODE = 'CB409';
    ELSIF v_period.archive_name IS NOT NULL THEN
        -- Before the update, so that other sessions can change the period meanwhile.
        IF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
            PERFORM centile_store.remove_results(v_period);
        ELSE
            PERFORM centile_store.remove_archive(p_period_id, v_period.archive_name);
        END IF;
        UPDATE centile_store.periods SET archive_name = NULL WHERE id = p_period_id;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.drop_archive(bigint, boolean) IS
'Drops the archive of a closed period, in two calls. Example: SELECT c.at IS NOT NULL AS is_cut_off, centile_store.build_archive(2), centile_store.compare_archive(2), centile_store.finish_close(2, c.at), centile_store.drop_archive(2, false), centile_store.drop_archive(2, true) FROM (SELECT centile_store.cut_off_period(2) AS at) c;';
