-- Replaces the sources of a combined board: an array of objects with board, period and weight. One
-- session at a time, so that two cannot close a cycle together.
CREATE OR REPLACE FUNCTION centile_store.set_sources(p_board_id integer, p_sources jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_source record;
    v_path   text;
BEGIN
    PERFORM pg_advisory_xact_lock(1128615508, -3);
    IF jsonb_typeof(p_sources) IS DISTINCT FROM 'array' OR jsonb_array_length(p_sources) NOT BETWEEN 1 AND 366 THEN
        RAISE EXCEPTION 'must be 1 to 366 sources' USING ERRCODE = 'CB422', DETAIL = 'sources';
    END IF;
    FOR v_source IN
        SELECT s.source ->> 'board' AS slug, s.source ->> 'period' AS period, split_part(s.source ->> 'period', ':', 1) AS kind, b.id, b.periods, b.ties
        FROM jsonb_array_elements(p_sources) WITH ORDINALITY AS s (source, place)
        LEFT JOIN centile_store.boards b ON b.slug = s.source ->> 'board'
        ORDER BY s.place
    LOOP
        IF v_source.id IS NULL THEN
            RAISE EXCEPTION 'there is no board %', quote_nullable(v_source.slug) USING ERRCODE = 'CB422', DETAIL = 'sources';
        ELSIF v_source.ties = 'second' THEN
            RAISE EXCEPTION 'board % has ties second, so its scores have no times', v_source.slug USING ERRCODE = 'CB422', DETAIL = 'sources';
        ELSIF position('@' IN v_source.period) > 0 THEN
            RAISE EXCEPTION 'a source must not be a segment: %', quote_literal(v_source.period) USING ERRCODE = 'CB422', DETAIL = 'sources';
        ELSIF v_source.kind IS NULL OR v_source.kind <> ALL (v_source.periods || '{season,snapshot,rolling}'::text[]) THEN
            RAISE EXCEPTION 'board % does not keep the period %', v_source.slug, quote_nullable(v_source.kind)
                USING ERRCODE = 'CB422', DETAIL = 'sources', HINT = format('Use %s, season:NAME, snapshot:NAME or rolling:LENGTH.', array_to_string(v_source.periods, ', '));
        ELSIF v_source.kind IN ('season', 'snapshot', 'rolling') AND NOT EXISTS (SELECT FROM centile.resolve_period(v_source.id, v_source.period)) THEN
            RAISE EXCEPTION 'board % has no period %', v_source.slug, quote_literal(v_source.period) USING ERRCODE = 'CB422', DETAIL = 'sources';
        END IF;
    END LOOP;
    DELETE FROM centile_store.combination_sources WHERE board_id = p_board_id;
    INSERT INTO centile_store.combination_sources (board_id, place, source_board_id, period, weight)
    SELECT p_board_id, s.place, b.id, s.source ->> 'period', coalesce((s.source ->> 'weight')::integer, 1)
    FROM jsonb_array_elements(p_sources) WITH ORDINALITY AS s (source, place)
    JOIN centile_store.boards b ON b.slug = s.source ->> 'board';
    WITH RECURSIVE path (id, slugs) AS (
        SELECT b.id, ARRAY[b.slug] FROM centile_store.boards b WHERE b.id = p_board_id
        UNION ALL
        SELECT b.id, p.slugs || b.slug
        FROM path p
        JOIN (SELECT DISTINCT s.board_id, s.source_board_id FROM centile_store.combination_sources s) s ON s.board_id = p.id
        JOIN centile_store.boards b ON b.id = s.source_board_id
        WHERE cardinality(p.slugs) = 1 OR p.id <> p_board_id)
    SELECT array_to_string(p.slugs, ' -> ') INTO v_path
    FROM path p WHERE p.id = p_board_id AND cardinality(p.slugs) > 1 ORDER BY cardinality(p.slugs), p.slugs LIMIT 1;
    IF v_path IS NOT NULL THEN
        RAISE EXCEPTION 'the board would be computed from itself: %', v_path USING ERRCODE = 'CB422', DETAIL = 'sources';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.set_sources(integer, jsonb) IS
'Replaces the sources of a combined board. Example: SELECT centile_store.set_sources(4, ''[{"board": "main", "period": "day", "weight": 2}]'');';
