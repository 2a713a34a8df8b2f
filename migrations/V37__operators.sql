-- centile_operator closes and refreshes from psql and pg_cron. It reads and writes no table.
DO $$
BEGIN
    -- CREATE ROLE without the right to create roles fails even if the role exists.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'centile_operator') THEN
        CREATE ROLE centile_operator NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role centile_operator does not exist and this user may not create it'
            USING HINT = 'As an administrator: CREATE ROLE centile_operator NOLOGIN; then migrate again.';
END
$$;

GRANT USAGE ON SCHEMA centile, centile_store TO centile_operator;
