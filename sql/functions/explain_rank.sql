-- How a player's rank is made up, step by step, all in one snapshot: what is found out, its value, and the statement that gives it, which an
-- owner of the tables can run at psql. Times are those of planning and running each statement once.
--
-- rank = 1 + players in better buckets + rows of the bucket above the key.
CREATE OR REPLACE FUNCTION centile.explain_rank(p_board text, p_user text, p_period text DEFAULT 'all_time')
RETURNS TABLE (step integer, what text, value text, time_ms numeric, statement text)
LANGUAGE plpgsql STABLE ROWS 14 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_board    centile_store.boards := centile_store.board_named(p_board);
    v_user_id  bigint := centile_store.user_named(p_user);
    v_source   record;
    v_period   bigint;
    v_entry    record;
    v_key      text;
    v_whole    text;
    v_bucket   record;
    v_parts    text[];
    v_step     record;
    v_value    text;
    v_begin    timestamptz;
    v_total    numeric := 0;
BEGIN
    SELECT * INTO v_source FROM centile_store.source_named(p_board, p_period);
    IF NOT (CASE WHEN v_source.archived_period_id IS NULL
                THEN EXISTS (SELECT FROM centile_store.leaderboard l WHERE l.ranking_id = v_source.ranking_id AND l.user_id = v_user_id)
                ELSE EXISTS (SELECT FROM centile_store.archive_players(v_source.archived_period_id, ARRAY[v_user_id])) END) THEN
        RAISE EXCEPTION 'no entry of player %', quote_literal(p_user)
            USING ERRCODE = 'CB404', DETAIL = 'entry', HINT = format('The player has no score in %s of board %s.', p_period, p_board);
    END IF;
    IF v_source.archived_period_id IS NOT NULL THEN
        v_period := v_source.archived_period_id;
        SELECT p.archive_name AS name INTO v_entry
        FROM centile_store.periods p WHERE p.id = v_period;
        v_parts := ARRAY[
            'archive that answers, for the period is closed', format('SELECT p.archive_name FROM centile_store.periods p WHERE p.id = %s', v_period),
            'version', format('SELECT format(''%%s.a%%s.%%s'', centile.epoch(), p.id, p.archive_revision) FROM centile_store.periods p WHERE p.id = %s', v_period),
            'score', format('SELECT a.score FROM centile_archive.%I a WHERE a.user_id = %s', v_entry.name, v_user_id),
            'rank', format('SELECT a.rank FROM centile_archive.%I a WHERE a.user_id = %s', v_entry.name, v_user_id),
            'position', format('SELECT a."position" FROM centile_archive.%I a WHERE a.user_id = %s', v_entry.name, v_user_id)];
    ELSE
        SELECT l.*, g.period_id INTO v_entry
        FROM centile_store.leaderboard l JOIN centile_store.rankings g ON g.id = l.ranking_id
        WHERE l.ranking_id = v_source.ranking_id AND l.user_id = v_user_id;
        v_period := v_entry.period_id;
        v_whole := format('%s, %s, %s, %s', v_entry.ranking_id, v_entry.rank_key, v_entry.tie_key, -v_user_id);
        -- Equal scores that share a rank do not count: the greatest key that the score could have stands for all.
        v_key := CASE WHEN v_board.ties = 'shared' THEN format('%s, 9223372036854775807, 9223372036854775807', v_entry.rank_key)
                      ELSE format('%s, %s, %s', v_entry.rank_key, v_entry.tie_key, -v_user_id) END;
        SELECT b.* INTO v_bucket
        FROM centile_store.bucket_of(v_entry.ranking_id, v_entry.rank_key,
            CASE WHEN v_board.ties = 'shared' THEN 9223372036854775807 ELSE v_entry.tie_key END,
            CASE WHEN v_board.ties = 'shared' THEN 9223372036854775807 ELSE -v_user_id END) b;
        v_parts := ARRAY[
            'ranking', format('SELECT p.ranking_id FROM centile_store.periods p WHERE p.id = %s', v_period),
            'version', format('SELECT centile.version_of(%s)', v_entry.ranking_id),
            'score', format('SELECT l.score FROM centile_store.leaderboard l WHERE l.ranking_id = %s AND l.user_id = %s', v_entry.ranking_id, v_user_id),
            'rank key, tie key, user key', format('SELECT concat_ws('', '', l.rank_key, l.tie_key, -l.user_id) FROM centile_store.leaderboard l WHERE l.ranking_id = %s AND l.user_id = %s', v_entry.ranking_id, v_user_id),
            'ties', format('SELECT b.ties FROM centile_store.boards b WHERE b.id = %s', v_board.id),
            'bucket', format('SELECT b.bucket FROM centile_store.bucket_of(%s, %s) b', v_entry.ranking_id, v_key),
            'place of the bucket', format('SELECT b.place FROM centile_store.bucket_of(%s, %s) b', v_entry.ranking_id, v_key),
            'players in better buckets', format('SELECT coalesce(sum(c.players), 0) FROM unnest((centile_store.bucket_totals(%s))[%s:]) AS c (players)', v_entry.ranking_id, v_bucket.place + 1),
            'rows above in the bucket', format('SELECT (centile_store.count_in_bucket(%s::smallint, %s, %s, false, false))[2]', v_bucket.bucket, v_entry.ranking_id, v_key),
            'rank', format('SELECT 1 + centile_store.count_above(%s, %s)', v_entry.ranking_id, v_key),
            'position', format('SELECT 1 + centile_store.count_above(%s)', v_whole)];
    END IF;

    v_parts := ARRAY['period', format('SELECT concat_ws('':'', p.kind, nullif(p.label, ''all_time'')) FROM centile_store.periods p WHERE p.id = %s', v_period)] || v_parts;
    FOR v_step IN SELECT n, v_parts[2 * n - 1] AS what, v_parts[2 * n] AS statement FROM generate_series(1, cardinality(v_parts) / 2) AS n LOOP
        v_begin := clock_timestamp();
        EXECUTE v_step.statement INTO v_value;
        step := v_step.n;
        what := v_step.what;
        value := v_value;
        time_ms := round(1000 * extract(epoch FROM clock_timestamp() - v_begin), 3);
        statement := v_step.statement;
        v_total := v_total + time_ms;
        RETURN NEXT;
    END LOOP;
    step := step + 1;
    what := 'all of these';
    value := NULL;
    time_ms := v_total;
    statement := NULL;
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION centile.explain_rank(text, text, text) IS
'How a player''s rank is made up: each step with its value, its time and the statement that gives it, for the owner or the service. Example: SELECT step, what, value FROM centile.explain_rank(''main'', ''ann'', ''week:2024-01-15'') WHERE what <> ''version'';';
GRANT EXECUTE ON FUNCTION centile.explain_rank(text, text, text) TO centile_reader;
