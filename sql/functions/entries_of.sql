-- The query reads events from s (id, user_id, points, tiebreak, occurred_at). The text names only
-- s, because archives are defined by it. With ties `second`, s.tiebreak is the second number; the tie
-- key is this number, negated where smaller ones are better.
--
-- A sum beyond 64 bits stops at ±(2^63 - 1), so that one player never prevents a period from being
-- filled or closed. Events and acts that lead there are refused. But a period that is filled later,
-- such as a rolling window, may hold a player's large scores without those that balance them. Then
-- only_zeros is true although the score is not 0. Such an entry accepts no event, because it does
-- not tell the sum; acts compute it again. With ties `second`, only_zeros means only this: one of the
-- two sums has stopped.
CREATE OR REPLACE FUNCTION centile_store.entries_of(p_board centile_store.boards) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_sign    text := CASE p_board.score_order WHEN 'asc' THEN '-' ELSE '' END;
    v_second  constant boolean := p_board.ties = 'second';
    v_sign_2  constant text := CASE p_board.tiebreak_order WHEN 'asc' THEN '-' ELSE '' END;
    -- As centile.tie_key.
    v_tie_key constant text := CASE WHEN v_second THEN v_sign_2 || 'coalesce(s.tiebreak, 0)'
        ELSE '((coalesce(s.tiebreak, 0)::bigint << 51) + 2251799813685247 - ((extract(epoch FROM s.occurred_at) - 946684800) * 1000000)::bigint)' END;
BEGIN
    RETURN CASE
        WHEN p_board.mode = 'sum' AND v_second THEN format($query$
        SELECT e.user_id, greatest(least(e.points, 9223372036854775807), -9223372036854775807)::bigint AS score,
               %1$sgreatest(least(e.points, 9223372036854775807), -9223372036854775807)::bigint AS rank_key,
               %2$sgreatest(least(e.number, 9223372036854775807), -9223372036854775807)::bigint AS tie_key,
               NULL::timestamptz AS reached_at, greatest(abs(e.points), abs(e.number)) > 9223372036854775807 AS only_zeros
        FROM (SELECT s.user_id, sum(s.points) AS points, coalesce(%3$s, 0) AS number FROM s GROUP BY s.user_id) e$query$,
            v_sign, v_sign_2, CASE p_board.tiebreak_sum
                WHEN 'added' THEN 'sum(s.tiebreak)'
                ELSE '(max(ARRAY[extract(epoch FROM s.occurred_at) * 1000000, s.id, s.tiebreak]) FILTER (WHERE s.tiebreak IS NOT NULL))[3]' END)
        WHEN p_board.mode = 'sum' THEN format($query$
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
               %3$s AS reached_at, e.only_zeros
        FROM (SELECT s.user_id, %2$s AS key, %4$s AS only_zeros FROM s GROUP BY s.user_id) e$query$,
            v_sign || 'e.key[1]',
            CASE p_board.mode
                WHEN 'best' THEN format('max(ARRAY[%ss.points, %s])', v_sign, v_tie_key)
                -- The greatest (time, id); its key follows.
                ELSE format('(max(ARRAY[extract(epoch FROM s.occurred_at) * 1000000, s.id, %ss.points, %s]))[3:4]::bigint[]', v_sign, v_tie_key) END,
            CASE WHEN v_second THEN 'NULL::timestamptz'
                ELSE 'timestamptz ''2000-01-01 00:00:00+00'' + (2251799813685247 - (e.key[2] & 2251799813685247)) * interval ''1 microsecond''' END,
            CASE WHEN v_second THEN 'false' ELSE 'bool_and(s.points = 0)' END)
        END;
END
$$;

COMMENT ON FUNCTION centile_store.entries_of(centile_store.boards) IS
'Text of the part of a query that turns events into entries. Example: SELECT centile_store.entries_of(b) LIKE ''%FROM s GROUP BY s.user_id%'' AS is_text FROM centile_store.boards b WHERE b.slug = ''main'';';
