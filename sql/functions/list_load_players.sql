-- The players of the lines that were copied, in the order of their ids, each with the first name that the lines have; or with the last. Returns how many.
CREATE FUNCTION centile_store.list_load_players(p_last_names boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '256MB'
AS $$
DECLARE
    v_players bigint;
BEGIN
    ANALYZE pg_temp.load_line;
    TRUNCATE pg_temp.load_player;
    INSERT INTO pg_temp.load_player (place, user_id, name)
    SELECT row_number() OVER (), n.user_id, n.user_name
    FROM (SELECT DISTINCT ON (l.user_id) l.user_id, l.user_name
          FROM pg_temp.load_line l
          ORDER BY l.user_id, l.user_name IS NULL, CASE WHEN p_last_names THEN -l.line ELSE l.line END) n;
    GET DIAGNOSTICS v_players = ROW_COUNT;
    RETURN v_players;
END
$$;

COMMENT ON FUNCTION centile_store.list_load_players(boolean) IS
'Lists the players of a load. Example: SELECT centile_store.make_load_tables(), centile_store.list_load_players(false);';
