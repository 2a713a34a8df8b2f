-- One step: whole batches of all lanes, until they have p_limit changes. p_until: the batch of each
-- lane to reach; NULL for all that are logged now. While is_done is false, pass the returned "until"
-- to the next call. If p_waits is false and another session holds the bucket lock, does nothing, and
-- is_done is NULL.
CREATE OR REPLACE FUNCTION centile_store.apply_board(
    p_board_id integer, p_limit integer DEFAULT 15000, p_until bigint[] DEFAULT NULL, p_waits boolean DEFAULT true, OUT until bigint[], OUT is_done boolean)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_lane record;
    v_step record;
BEGIN
    until := coalesce(p_until, centile_store.logged_batches(p_board_id));
    is_done := NOT centile_store.is_behind(p_board_id, until);
    IF is_done THEN
        RETURN;
    ELSIF NOT p_waits AND NOT pg_try_advisory_xact_lock(1128615512, p_board_id) THEN
        is_done := NULL;
        RETURN;
    END IF;
    PERFORM centile_store.lock_buckets(p_board_id);
    -- The lane that is furthest behind comes first.
    FOR v_lane IN
        SELECT (a.place - 1)::smallint AS lane, a.applied, a.newest
        FROM unnest(centile_store.applied_batches(p_board_id, cardinality(until)), until) WITH ORDINALITY AS a (applied, newest, place)
        WHERE a.newest > a.applied
        ORDER BY a.newest - a.applied DESC
    LOOP
        SELECT * INTO v_step FROM centile_store.apply_lane(p_board_id, v_lane.lane, v_lane.applied, v_lane.newest, p_limit);
        p_limit := p_limit - v_step.changes;
        EXIT WHEN p_limit <= 0;
    END LOOP;
    is_done := NOT centile_store.is_behind(p_board_id, until);
END
$$;

COMMENT ON FUNCTION centile_store.apply_board(integer, integer, bigint[], boolean) IS
'Applies logged batches of a board to its bucket rows and counts. Example: SELECT a.is_done FROM centile_store.apply_board(1) a;';
