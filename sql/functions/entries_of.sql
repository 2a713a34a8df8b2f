-- The query reads events from s (id, user_id, points, tiebreak, occurred_at). The text names only
-- s, because archives are defined by it.
--
-- A sum beyond 64 bits stops at ±(2^63 - 1), so that one player never prevents a period from being
-- filled or closed. Events and acts that lead there are refused. But a period that is filled later,
-- such as a rolling window, may hold a player's large scores without those that balance them. Then
-- only_zeros is true although the score is not 0. Such an entry accepts no event, because it does
-- not tell the sum; acts compute it again.
CREATE OR REPLACE FUNCTION centile_store.entries_of(p_board centile_store.boards) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_sign    text := CASE p_board.score_order WHEN 'asc' THEN '-' ELSE '' END;
    -- As centile.tie_key.
    v_tie_key constant text := '((coalesce(s.tiebreak, 0)::bigint << 51) + 2251799813685247 - ((extract(epoch FROM s.occurred_at) - 946684800) * 1000000)::bigint)';
BEGIN
    RETURN CASE p_board.mode
        WHEN 'sum' THEN format($query$
        SELECT e.user_id, e.score, %1$s AS rank_key,
               2251799813685247 - ((extract(epoch FROM e.reached_at) - 946684800) * 1000000)::bigint AS tie_key,
               e.reached_at, e.only_zeros
        FROM (SELECT s.user_id, greatest(least(sum(s.points), 9223372036854775807), -9223372036854775807)::bigint AS score,
                     coalesce(max(s.occurred_at) FILTER (WHERE s.points <> 0), min(s.occurred_at)) AS reached_at,
                     count(*) FILTER (WHERE s.points <> 0) = 0 OR abs(sum(s.points)) > 9223372036854775807 AS only_zeros
              FROM s GROUP BY s.user_id) e$query$,
            v_sign || 'e.score')
        ELSE format($query$
        SELECT e.user_id, %1$s AS score, e.key[1] AS rank_key, e.key[2] AS tie_key,
               timestamptz '2000-01-01 00:00:00+00' + (2251799813685247 - (e.key[2] & 2251799813685247)) * interval '1 microsecond' AS reached_at,
               e.only_zeros
        FROM (SELECT s.user_id, %2$s AS key, bool_and(s.points = 0) AS only_zeros FROM s GROUP BY s.user_id) e$query$,
            v_sign || 'e.key[1]',
            CASE p_board.mode
                WHEN 'best' THEN format('max(ARRAY[%ss.points, %s])', v_sign, v_tie_key)
                -- The greatest (time, id); its key follows.
                ELSE format('(max(ARRAY[extract(epoch FROM s.occurred_at) * 1000000, s.id, %ss.points, %s]))[3:4]::bigint[]', v_sign, v_tie_key) END)
        END;
END
$$;

COMMENT ON FUNCTION centile_store.entries_of(centile_store.boards) IS
'Text of the part of a query that turns events into entries. Example: SELECT centile_store.entries_of(b) LIKE ''%FROM s GROUP BY s.user_id%'' AS is_text FROM centile_store.boards b WHERE b.slug = ''main'';';
