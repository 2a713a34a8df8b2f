-- Gives some of a load's players the names that they are listed with: of the places after one, p_limit. Returns how many changed.
CREATE FUNCTION centile_store.rename_load_players(p_after bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN (SELECT centile.rename_users(array_agg(n.user_id ORDER BY n.place), array_agg(n.name ORDER BY n.place))
            FROM pg_temp.load_player n WHERE n.place > p_after AND n.place <= p_after + p_limit AND n.name IS NOT NULL);
END
$$;

COMMENT ON FUNCTION centile_store.rename_load_players(bigint, integer) IS
'Renames players of a load. Example: SELECT centile_store.make_load_tables(), centile_store.rename_load_players(0, 1000);';
