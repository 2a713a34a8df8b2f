-- Lets centile_reader read bucket rows, and run the statements of centile.explain_rank.
GRANT USAGE ON SCHEMA centile_store TO centile_reader;
GRANT SELECT ON centile_store.leaderboard_bucket TO centile_reader;

DO $$
BEGIN
    FOR v_bucket IN 0..99 LOOP
        EXECUTE format('GRANT SELECT ON centile_store.%I TO centile_reader', 'leaderboard_bucket_' || to_char(v_bucket, 'FM00'));
    END LOOP;
END
$$;
