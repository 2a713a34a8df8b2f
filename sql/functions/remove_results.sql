-- Drops the tables of the month as soon as no template keeps results in them. Callers have the owner's
-- rights, and a limit on the time that they wait for a lock.
CREATE OR REPLACE FUNCTION centile_store.remove_results(p_period centile_store.periods) RETURNS void
LANGUAGE plpgsql VOLATILE
SET timezone = 'UTC'
AS $$
DECLARE
    v_first  bigint := centile_store.first_closed_id(p_period.ends_at);
    v_suffix text := to_char(p_period.ends_at, 'YYYY_MM');
BEGIN
    IF date_trunc('month', p_period.ends_at) < date_trunc('month', clock_timestamp()) AND NOT EXISTS (
        SELECT FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id AND b.is_template
        WHERE p.archive_dropped_at IS NULL AND isfinite(p.ends_at) AND centile_store.first_closed_id(p.ends_at) = v_first) THEN
        EXECUTE format('DROP TABLE IF EXISTS centile_store.%I, centile_store.%I', 'closed_results_' || v_suffix, 'closed_boards_' || v_suffix);
        RETURN;
    END IF;
    WITH old AS (
        DELETE FROM centile_store.closed_boards c WHERE c.id >= v_first AND c.id < v_first + (1::bigint << 40) AND c.period_id = p_period.id RETURNING c.id)
    DELETE FROM centile_store.closed_results r USING old WHERE r.closed_id = old.id AND r.closed_id >= v_first AND r.closed_id < v_first + (1::bigint << 40);
END
$$;

COMMENT ON FUNCTION centile_store.remove_results(centile_store.periods) IS
'Deletes the results of a template''s boards in a closed period. Example: SELECT centile_store.remove_results(p) FROM centile_store.periods p WHERE p.id = 0;';
