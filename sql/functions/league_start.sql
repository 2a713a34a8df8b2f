CREATE OR REPLACE FUNCTION centile_store.league_start(p_board centile_store.boards, p_kind text, p_at timestamptz, OUT starts_at timestamptz, OUT period_id bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_ends_at timestamptz;
BEGIN
    SELECT h.starts_at, h.ends_at, p.id INTO starts_at, v_ends_at, period_id
    FROM centile_store.period_holding(p_board.id, p_kind, p_at, p_board.time_zone) h
    LEFT JOIN centile_store.periods p ON p.board_id = p_board.id AND p.kind = p_kind AND p.label = h.label AND p.segment = '';
    IF EXISTS (SELECT FROM centile_store.players p WHERE p.board_id = p_board.id AND p.period_ids @> ARRAY[period_id]) THEN
        starts_at := v_ends_at;
        period_id := NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.league_start(centile_store.boards, text, timestamptz) IS
'The period in which a new league of a board starts: the one that holds p_at, unless players have standings in it. Example: SELECT s.period_id FROM centile_store.boards b CROSS JOIN LATERAL centile_store.league_start(b, ''week'', now()) s WHERE b.slug = ''arena'';';
