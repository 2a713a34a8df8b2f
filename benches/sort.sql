-- Measures a rank by sorting all players, and by counting the better ones, without an index, in any
-- PostgreSQL: psql -f benches/sort.sql
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TEMPORARY TABLE scores (user_id bigint, score bigint);
DO $$
DECLARE
    v_players integer;
    v_memory  text;
    v_began   timestamptz;
    v_sort    double precision[];
    v_count   double precision[];
BEGIN
    PERFORM setseed(0.5);
    FOREACH v_players IN ARRAY '{100000,1000000,10000000}'::integer[] LOOP
        TRUNCATE scores;
        INSERT INTO scores SELECT n, random() * 1000000000 FROM generate_series(1, v_players) AS n;
        ANALYZE scores;
        FOREACH v_memory IN ARRAY '{4MB,1GB}'::text[] LOOP
            PERFORM set_config('work_mem', v_memory, true);
            v_sort := '{}';
            v_count := '{}';
            FOR n IN 1 .. 3 LOOP
                v_began := clock_timestamp();
                PERFORM r.rank FROM (SELECT s.user_id, rank() OVER (ORDER BY s.score DESC) AS rank FROM scores s) r WHERE r.user_id = 1;
                v_sort := v_sort || extract(epoch FROM clock_timestamp() - v_began)::double precision;
                v_began := clock_timestamp();
                PERFORM 1 + count(*) FROM scores s WHERE s.score > (SELECT x.score FROM scores x WHERE x.user_id = 1 LIMIT 1);
                v_count := v_count || extract(epoch FROM clock_timestamp() - v_began)::double precision;
            END LOOP;
            RAISE NOTICE '% players, work_mem %: rank() % s, count(*) % s', v_players, v_memory, v_sort, v_count;
        END LOOP;
    END LOOP;
END
$$;
