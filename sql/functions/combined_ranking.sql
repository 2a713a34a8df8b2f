-- Defines the materialized views of combined boards, which exist longer than any version of this
-- function: keep its arguments and columns. A view that named the views of the sources would keep
-- retention from dropping them. pg_restore may call this before it has restored them; the ranking is
-- then empty until the next refresh, which is due after a restore.
--
-- A DBA's REFRESH MATERIALIZED VIEW would change rows, but neither revision nor top. It holds the
-- view's lock and, unlike pg_restore, has check_function_bodies on.
CREATE OR REPLACE FUNCTION centile_store.combined_ranking(p_board_id integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id bigint, score bigint, reached_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 1000000
SET work_mem = '128MB'
AS $$
#variable_conflict use_column
DECLARE
    v_board   record;
    v_missing text;
    v_numeric boolean;
    v_entries text;
    v_key     text;
    v_order   text;
    v_user    bigint;
BEGIN
    IF current_setting('centile.building', true) IS DISTINCT FROM 'on' AND current_setting('check_function_bodies')::boolean AND EXISTS (
        SELECT FROM centile_store.periods p
        JOIN centile_store.combinations c ON c.board_id = p.board_id AND c.epoch = centile.epoch()
        JOIN pg_catalog.pg_class v ON v.relnamespace = 'centile_archive'::regnamespace AND v.relname = p.archive_name
        JOIN pg_catalog.pg_locks l ON l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.relation = v.oid AND l.mode IN ('ExclusiveLock', 'AccessExclusiveLock')
        WHERE p.board_id = p_board_id) THEN
        RAISE EXCEPTION 'this would change the rows but not the revision of the ranking' USING ERRCODE = 'CB409', HINT = 'Run centile refresh --board.';
    END IF;
    SELECT b.score_order, b.ties, coalesce(c.next_sources, c.sources) AS sources INTO STRICT v_board
    FROM centile_store.combinations c JOIN centile_store.boards b ON b.id = c.board_id WHERE c.board_id = p_board_id;
    SELECT s.archive INTO v_missing
    FROM jsonb_to_recordset(v_board.sources) AS s (archive text)
    WHERE s.archive IS NOT NULL
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                      WHERE c.relnamespace = 'centile_archive'::regnamespace AND c.relname = s.archive AND c.relispopulated);
    IF v_missing IS NOT NULL AND current_setting('centile.building', true) = 'on' THEN
        RAISE EXCEPTION 'the archive centile_archive.% is missing', v_missing USING ERRCODE = 'CB409';
    ELSIF v_missing IS NOT NULL THEN
        RAISE WARNING 'the archive % is missing: the combined ranking stays empty until its next refresh', v_missing;
        RETURN;
    END IF;
    v_key := CASE v_board.score_order WHEN 'asc' THEN 'e.score' ELSE 'e.score DESC' END;
    v_order := v_key || ', e.reached_at, e.user_id';
    FOREACH v_numeric IN ARRAY '{false,true}'::boolean[] LOOP
        v_entries := centile_store.combined_entries_query(p_board_id, v_board.sources, v_numeric);
        BEGIN
            -- Sorts bigint, which is faster than numeric.
            RETURN QUERY EXECUTE format('SELECT row_number() OVER (ORDER BY %s), %s, e.user_id, e.score, e.reached_at
                                         FROM (SELECT x.user_id, x.score::bigint AS score, x.reached_at FROM (%s) x) e', v_order,
                CASE v_board.ties WHEN 'shared' THEN format('rank() OVER (ORDER BY %s)', v_key) ELSE format('row_number() OVER (ORDER BY %s)', v_order) END,
                v_entries);
            RETURN;
        EXCEPTION WHEN numeric_value_out_of_range THEN
            -- A product, or a score. A product may leave the range without the score.
            NULL;
        END;
    END LOOP;
    EXECUTE format('SELECT e.user_id FROM (%s) e WHERE e.score NOT BETWEEN -9223372036854775807 AND 9223372036854775807 ORDER BY e.user_id LIMIT 1', v_entries)
    INTO v_user;
    RAISE EXCEPTION 'the score of the player with internal_id % would leave the range of 64 bits', v_user USING ERRCODE = 'CB409', DETAIL = 'score_out_of_range';
END
$$;

COMMENT ON FUNCTION centile_store.combined_ranking(integer) IS
'Computes the ranking of a combined board from its resolved sources. Example: SELECT position, rank, score FROM centile_store.combined_ranking(4);';
