-- The first step of a refresh; the last ranking still answers. Call it under REPEATABLE READ, so that
-- the sources are resolved and read in one snapshot. Replaces the view of an interrupted attempt,
-- which no statement reads.
CREATE OR REPLACE FUNCTION centile_store.build_combination(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET work_mem = '128MB'
SET maintenance_work_mem = '128MB'
SET lock_timeout = '10s'
SET client_min_messages = warning
AS $$
DECLARE
    v_slug    text := (SELECT b.slug FROM centile_store.boards b WHERE b.id = p_board_id);
    v_state   centile_store.combinations;
    v_sources jsonb;
    v_problem text;
    v_id      bigint;
    v_name    text;
    v_worst   bigint;
BEGIN
    SELECT * INTO STRICT v_state FROM centile_store.combinations WHERE board_id = p_board_id FOR UPDATE;
    PERFORM centile_store.drop_combined_view(p_board_id, v_state.next_view) WHERE v_state.next_view IS NOT NULL;
    SELECT jsonb_agg(to_jsonb(r) - '{problem}'::text[] ORDER BY r.place), (array_agg(r.problem ORDER BY r.place) FILTER (WHERE r.problem IS NOT NULL))[1] INTO v_sources, v_problem
    FROM centile_store.resolve_sources(p_board_id) r;
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION '%', v_problem USING ERRCODE = 'CB409';
    END IF;
    -- No two views have the same number, so that the old one can stay until nobody reads it.
    v_id := nextval('centile_store.combined_view_number');
    v_name := left(replace(v_slug, '-', '_'), 32) || '_combined_' || v_id;
    UPDATE centile_store.combinations c
    SET next_view = v_name, next_as_of = transaction_timestamp(), next_sources = v_sources, next_end = centile_store.ledger_end(),
        next_batches = (SELECT jsonb_object_agg(b.id, centile_store.lane_batches(b.id, b.lanes))
                        FROM centile_store.boards b WHERE b.id IN (SELECT centile_store.source_boards(p_board_id)))
    WHERE c.board_id = p_board_id;
    -- Without it, centile_store.combined_ranking tolerates a missing archive.
    PERFORM set_config('centile.building', 'on', true);
    EXECUTE format('CREATE MATERIALIZED VIEW centile_archive.%I AS SELECT * FROM centile_store.combined_ranking(%s)', v_name, p_board_id);
    EXECUTE format('CREATE UNIQUE INDEX %I ON centile_archive.%I ("position")', format('combined_%s_position', v_id), v_name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON centile_archive.%I (user_id)', format('combined_%s_user', v_id), v_name);
    EXECUTE format('CREATE INDEX %I ON centile_archive.%I (rank)', format('combined_%s_rank', v_id), v_name);
    -- Boards that rank low scores first need the negative of every score.
    EXECUTE format('SELECT a.user_id FROM centile_archive.%1$I a
                    WHERE a."position" IN (1, (SELECT max("position") FROM centile_archive.%1$I)) AND a.score = -9223372036854775808 LIMIT 1', v_name)
    INTO v_worst;
    IF v_worst IS NOT NULL THEN
        RAISE EXCEPTION 'the score of the player with internal_id % would leave the range of 64 bits', v_worst USING ERRCODE = 'CB409', DETAIL = 'score_out_of_range';
    END IF;
    EXECUTE format('COMMENT ON MATERIALIZED VIEW centile_archive.%I IS %L', v_name, format(
        'Ranking of the combined board %s. With ids and names: SELECT * FROM centile.ranking(%L). Only centile refresh refreshes it: REFRESH MATERIALIZED VIEW fails, and WITH NO DATA makes reads fail until then.', v_slug, v_slug));
    EXECUTE format('GRANT SELECT ON centile_archive.%I TO centile_reader, centile_service', v_name);
    EXECUTE format('ANALYZE centile_archive.%I', v_name);
END
$$;

COMMENT ON FUNCTION centile_store.build_combination(integer) IS
'Computes the ranking of a combined board into a new view. Example: SELECT centile_store.build_combination(4);';
