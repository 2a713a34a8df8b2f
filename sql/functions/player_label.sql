CREATE OR REPLACE FUNCTION centile_store.player_label(p_user_id bigint) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT format('player %s (%s)', coalesce((SELECT u.external_id FROM centile_store.users u WHERE u.id = p_user_id), 'unknown'), p_user_id)
$$;

COMMENT ON FUNCTION centile_store.player_label(bigint) IS
'A player by both ids, for reports. Example: SELECT centile_store.player_label(1);';
