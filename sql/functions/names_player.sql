-- Whether a frozen top has a player in it.
CREATE FUNCTION centile_store.names_player(p_top bytea, p_user_id bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    SELECT coalesce(convert_from(p_top, 'UTF8')::jsonb -> 'rows' @> jsonb_build_array(jsonb_build_object('internal_id', p_user_id)), false)
$$;

COMMENT ON FUNCTION centile_store.names_player(bytea, bigint) IS
'Whether a frozen top has a player in it. Example: SELECT label, centile_store.names_player(frozen_top, 1) FROM centile_store.periods WHERE frozen_top IS NOT NULL ORDER BY id;';
