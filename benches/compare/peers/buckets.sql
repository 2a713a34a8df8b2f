-- 100 bucket tables by score, as published. `users` holds each player's bucket, `bounds` the lower bounds of the
-- buckets. Bounds never change.
CREATE TABLE users (user_id text NOT NULL, user_name text NOT NULL, score bigint NOT NULL, bucket smallint)
    WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE bounds (lows bigint[] NOT NULL);
CREATE TABLE buckets (bucket smallint NOT NULL, score bigint NOT NULL, user_id text NOT NULL) PARTITION BY LIST (bucket);
DO $$
BEGIN
    FOR n IN 0..99 LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF buckets FOR VALUES IN (%s)
                        WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)',
                       'bucket_' || to_char(n, 'FM00'), n);
    END LOOP;
END $$;

-- Writes one score. Locks the player's row first, so that later reads see other commits.
CREATE FUNCTION add_score(p_user text, p_points bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_score bigint;
    v_from smallint;
    v_to smallint;
BEGIN
    SELECT u.score, u.bucket INTO v_score, v_from FROM users u WHERE u.user_id = p_user FOR UPDATE;
    IF NOT FOUND THEN
        RAISE 'no player %', p_user;
    END IF;
    v_to := width_bucket(v_score + p_points, (SELECT b.lows FROM bounds b));
    UPDATE users u SET score = v_score + p_points, bucket = v_to WHERE u.user_id = p_user;
    IF v_from = v_to THEN
        EXECUTE format('UPDATE %I SET score = $1 WHERE score = $2 AND user_id = $3', 'bucket_' || to_char(v_to, 'FM00'))
        USING v_score + p_points, v_score, p_user;
    ELSE
        EXECUTE format('DELETE FROM %I WHERE score = $1 AND user_id = $2', 'bucket_' || to_char(v_from, 'FM00'))
        USING v_score, p_user;
        EXECUTE format('INSERT INTO %I VALUES ($1, $2, $3)', 'bucket_' || to_char(v_to, 'FM00'))
        USING v_to, v_score + p_points, p_user;
    END IF;
    RETURN v_score + p_points;
END $$;

-- Writes many scores, one per player, as a set. A separate statement first locks the players' rows in the order of
-- their ids.
CREATE FUNCTION add_scores(p_users text[], p_points bigint[]) RETURNS TABLE (player text, new_score bigint) LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    PERFORM FROM users u WHERE u.user_id = ANY (p_users) ORDER BY u.user_id FOR UPDATE;
    RETURN QUERY
    WITH moves AS MATERIALIZED (
        SELECT u.user_id, u.score AS old, u.bucket AS old_bucket, u.score + e.points AS new,
               width_bucket(u.score + e.points, b.lows)::smallint AS new_bucket
        FROM unnest(p_users, p_points) AS e(user_id, points) JOIN users u USING (user_id) CROSS JOIN bounds b),
    changed AS (UPDATE users u SET score = m.new, bucket = m.new_bucket FROM moves m WHERE u.user_id = m.user_id),
    gone AS (DELETE FROM buckets b USING moves m
             WHERE b.bucket = m.old_bucket AND b.score = m.old AND b.user_id = m.user_id AND m.new <> m.old),
    come AS (INSERT INTO buckets (bucket, score, user_id) SELECT m.new_bucket, m.new, m.user_id FROM moves m WHERE m.new <> m.old)
    SELECT m.user_id, m.new FROM moves m;
END $$;
