-- In the transaction that closes the period, under the structure lock: from here on, the divisions
-- after the period count. Writers give players of the next period their cohorts at once.
CREATE OR REPLACE FUNCTION centile_store.move_league(p_period centile_store.periods) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    UPDATE centile_store.leagues l
    -- Earlier periods that an import may still open do not belong to the league.
    SET next_from = coalesce((SELECT min(p.starts_at) FROM centile_store.periods p
                              WHERE p.board_id = l.board_id AND p.kind = l.kind AND p.segment = '' AND p.starts_at >= p_period.ends_at AND p.state = 'open'), p_period.ends_at),
        closed_id = p_period.id,
        period_id = (SELECT p.id FROM centile_store.periods p
                     WHERE p.board_id = l.board_id AND p.kind = l.kind AND p.segment = '' AND p.starts_at >= p_period.ends_at AND p.state = 'open'
                     ORDER BY p.starts_at LIMIT 1)
    WHERE l.board_id = p_period.board_id AND l.period_id = p_period.id AND l.deleted_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.move_league(centile_store.periods) IS
'Makes the next period that of the league whose period was closed. Example: SELECT centile_store.move_league(p) FROM centile_store.periods p WHERE p.id = 2;';
