-- Raises the profile revision in the same transaction, so that cached lists expire.
CREATE OR REPLACE FUNCTION centile.rename_users(p_external_ids text[], p_names text[]) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_revision bigint;
    v_changed  integer;
BEGIN
    UPDATE centile_store.profile_revision SET revision = revision + 1 RETURNING revision INTO v_revision;
    -- In the order of their ids, as centile_store.add_friends.
    PERFORM FROM centile_store.users u WHERE u.external_id = ANY (p_external_ids) ORDER BY u.id FOR NO KEY UPDATE;
    UPDATE centile_store.users u
    SET name = n.name, profile_revision = v_revision
    FROM (SELECT DISTINCT ON (external_id) external_id, name
          FROM unnest(p_external_ids, p_names) WITH ORDINALITY AS x (external_id, name, ordinal)
          WHERE name IS NOT NULL
          ORDER BY external_id, ordinal DESC) n
    WHERE u.external_id = n.external_id AND u.name <> n.name AND u.erased_at IS NULL;
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    RETURN v_changed;
END
$$;

COMMENT ON FUNCTION centile.rename_users(text[], text[]) IS
'Renames users and returns the number of changed names. Example: SELECT centile.rename_users(ARRAY[''ann''], ARRAY[''Ann B.'']);';
