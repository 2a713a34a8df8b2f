-- The third step of closing a period of a template: centile_store.close_boards has compared each board.
CREATE OR REPLACE FUNCTION centile_store.sum_closed_boards(p_period centile_store.periods) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    UPDATE centile_store.periods p SET archive_players = s.players, archive_last_at = s.last_at, archive_differences = s.differences
    FROM (SELECT coalesce(sum(c.players), 0) AS players, max(c.last_at) AS last_at, coalesce(sum(c.differences), 0) AS differences
          FROM centile_store.closed_boards c
          WHERE c.period_id = p_period.id
            AND c.id >= centile_store.first_closed_id(p_period.ends_at) AND c.id < centile_store.first_closed_id(p_period.ends_at) + (1::bigint << 40)) s
    WHERE p.id = p_period.id
    RETURNING p.archive_differences
$$;

COMMENT ON FUNCTION centile_store.sum_closed_boards(centile_store.periods) IS
'Stores the players and differences of a template''s boards in a period, and returns the differences. Example: SELECT centile_store.sum_closed_boards(p) FROM centile_store.periods p WHERE p.id = 0;';
