-- In the snapshot of the calling statement. If has_all_profiles is false, the directory must be emptied:
-- more than 1,000 profiles have changed, or the revision went back.
CREATE OR REPLACE FUNCTION centile_store.changed_profiles(
    p_revision bigint, OUT revision bigint, OUT has_all_profiles boolean, OUT profile_ids bigint[], OUT external_ids text[], OUT names text[], OUT avatars text[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    has_all_profiles := true;
    SELECT v.revision INTO revision FROM centile_store.profile_revision v;
    IF revision > p_revision THEN
        SELECT count(*) <= 1000, array_agg(u.id), array_agg(u.external_id), array_agg(u.name), array_agg(u.avatar)
        INTO has_all_profiles, profile_ids, external_ids, names, avatars
        FROM (SELECT * FROM centile_store.users u WHERE u.profile_revision > p_revision AND u.profile_revision > 0
              ORDER BY u.profile_revision LIMIT 1001) u;
    ELSIF revision < p_revision THEN
        has_all_profiles := false;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.changed_profiles(bigint) IS
'Profiles that have changed since a profile revision. Example: SELECT c.revision FROM centile_store.changed_profiles(0) c;';
