-- As on a single server. Partitioned tables have no constraint to name.
CREATE OR REPLACE FUNCTION centile.ensure_users(p_external_ids text[], p_names text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_made integer;
BEGIN
    INSERT INTO centile_store.users (external_id, name, lane_hash)
    SELECT DISTINCT ON (n.external_id COLLATE "C") n.external_id, coalesce(n.name, n.external_id), centile.lane_hash(n.external_id)
    FROM unnest(p_external_ids, p_names) AS n (external_id, name)
    WHERE NOT EXISTS (SELECT FROM centile_store.users u WHERE u.external_id = n.external_id)
    ORDER BY n.external_id COLLATE "C"
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_made = ROW_COUNT;
    RETURN v_made;
END
$$;

COMMENT ON FUNCTION centile.ensure_users(text[], text[]) IS
'Creates the users that do not exist, and returns their number.';
