-- Changes the members that p_change has: join, aggregate, refresh and sources. A change to the sources,
-- join or aggregate makes a refresh due at once; until it ends, readers get the previous ranking. A
-- change of the refresh rule alone makes no refresh due. The function does not wait for a refresh of the
-- board, but fails: its caller holds locks that bans need.
CREATE OR REPLACE FUNCTION centile_store.set_combination(p_board centile_store.boards, p_change jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_was  jsonb := centile_store.combination_rules(p_board.id);
    v_name text;
BEGIN
    PERFORM FROM centile_store.combinations WHERE board_id = p_board.id FOR UPDATE NOWAIT;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'board % is not computed from others', p_board.slug USING ERRCODE = 'CB422', DETAIL = 'combination', HINT = 'Create a combined board.';
    END IF;
    IF jsonb_typeof(p_change) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'must be a JSON object' USING ERRCODE = 'CB422', DETAIL = 'combination';
    END IF;
    v_name := (SELECT min(c.name) FROM jsonb_object_keys(p_change) AS c (name) WHERE c.name <> ALL ('{join,aggregate,refresh,sources}'));
    IF v_name IS NOT NULL THEN
        RAISE EXCEPTION 'is not part of a combination' USING ERRCODE = 'CB422', DETAIL = 'combination.' || v_name, HINT = 'Use join, aggregate, refresh and sources.';
    END IF;
    UPDATE centile_store.combinations c
    SET join_rule = coalesce(p_change ->> 'join', c.join_rule), aggregate = coalesce(p_change ->> 'aggregate', c.aggregate), refresh = coalesce(p_change ->> 'refresh', c.refresh)
    WHERE c.board_id = p_board.id;
    IF p_change ->> 'sources' IS NOT NULL THEN
        PERFORM centile_store.set_sources(p_board.id, p_change -> 'sources');
    END IF;
    IF centile_store.combination_rules(p_board.id) - 'refresh' <> v_was - 'refresh' THEN
        UPDATE centile_store.combinations c
        -- After the last refresh, even if the clock was set back.
        SET defined_at = greatest(clock_timestamp(), c.as_of + interval '1 microsecond', c.next_as_of + interval '1 microsecond'), failures = 0, failed_at = NULL, failure = NULL
        WHERE c.board_id = p_board.id;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.set_combination(centile_store.boards, jsonb) IS
'Changes the sources of a combined board or how they are joined, aggregated and refreshed. Example: SELECT centile_store.set_combination(b, ''{"join": "intersection"}'') FROM centile_store.boards b WHERE b.slug = ''hero'';';
