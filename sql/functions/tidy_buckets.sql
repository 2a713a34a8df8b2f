-- Gives the stripes of these buckets the size they should have, one bucket after the other, as many as one short step can; see
-- tidy_stripes. Behind writers a step waits for the structure lock ten times as long as it holds it, so that what it is granted is used
-- for more than one bucket; none is begun once 8 milliseconds are over.
CREATE FUNCTION centile_store.tidy_buckets(p_ranking_id bigint, p_buckets smallint[], p_largest double precision DEFAULT 2,
    OUT changes integer, OUT buckets integer)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_bucket smallint;
    v_since  timestamptz;
BEGIN
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    v_since := clock_timestamp();
    changes := 0;
    buckets := 0;
    FOREACH v_bucket IN ARRAY p_buckets LOOP
        changes := changes + centile_store.tidy_stripes(p_ranking_id, v_bucket, p_largest);
        buckets := buckets + 1;
        EXIT WHEN clock_timestamp() > v_since + interval '8 milliseconds';
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.tidy_buckets(bigint, smallint[], double precision) IS
'Splits and merges stripes of buckets by their size and returns how many changes that took and in how many buckets. Example: SELECT * FROM centile_store.tidy_buckets(1, ''{50,51}'');';
