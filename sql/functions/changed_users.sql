-- A worker of a cluster (sql/cluster) has some of the lanes; p_known and p_now are NULL for others.
CREATE OR REPLACE FUNCTION centile_store.changed_users(p_board_id integer, p_known bigint[], p_now bigint[], p_limit integer, p_user_limit bigint)
RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_missing bigint;
    v_grows   boolean;
    v_found   bigint;
    v_users   bigint;
BEGIN
    SELECT sum(b.now - b.known), bool_and(coalesce(b.now >= b.known, num_nonnulls(b.now, b.known) = 0)) INTO v_missing, v_grows FROM unnest(p_known, p_now) AS b (known, now);
    IF NOT v_grows OR v_missing > p_limit THEN
        RETURN NULL;
    END IF;
    -- Counts first: the lists may be long.
    SELECT count(*), coalesce(sum(cardinality(c.user_ids)), 0) INTO v_found, v_users
    FROM unnest(p_known, p_now) WITH ORDINALITY AS b (known, now, place)
    JOIN centile_store.batch_changes c ON c.board_id = p_board_id AND c.lane = b.place - 1 AND c.batch > b.known AND c.batch <= b.now;
    IF v_found <> v_missing OR v_users > p_user_limit THEN
        RETURN NULL;
    END IF;
    RETURN ARRAY(
        SELECT DISTINCT u.id
        FROM unnest(p_known, p_now) WITH ORDINALITY AS b (known, now, place)
        JOIN centile_store.batch_changes c ON c.board_id = p_board_id AND c.lane = b.place - 1 AND c.batch > b.known AND c.batch <= b.now
        CROSS JOIN unnest(c.user_ids) AS u (id));
END
$$;

COMMENT ON FUNCTION centile_store.changed_users(integer, bigint[], bigint[], integer, bigint) IS
'Users whose entries changed between two batches of each lane; NULL if the feed lacks some, or has more than the limits. Example: SELECT centile_store.changed_users(1, ''{0,0}'', ''{0,0}'', 10, 10);';
