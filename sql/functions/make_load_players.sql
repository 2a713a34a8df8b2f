-- Makes those of some of a load's players who do not exist yet: of the places after one, p_limit. In a transaction of its own, because boards
-- share users and whoever makes the same one waits for it.
CREATE FUNCTION centile_store.make_load_players(p_after bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_made integer;
BEGIN
    INSERT INTO centile_store.users (external_id, name, lane_hash)
    SELECT n.user_id, coalesce(n.name, n.user_id), centile.lane_hash(n.user_id)
    FROM pg_temp.load_player n
    WHERE n.place > p_after AND n.place <= p_after + p_limit
      AND NOT EXISTS (SELECT FROM centile_store.users u WHERE u.external_id = n.user_id)
    ORDER BY n.place
    ON CONFLICT ON CONSTRAINT users_external_id_key DO NOTHING;
    GET DIAGNOSTICS v_made = ROW_COUNT;
    RETURN v_made;
END
$$;

COMMENT ON FUNCTION centile_store.make_load_players(bigint, integer) IS
'Makes players of a load who do not exist yet. Example: SELECT centile_store.make_load_tables(), centile_store.make_load_players(0, 1000);';
