-- Reads all of the board's ledger. Changes of segments have batches, too.
CREATE OR REPLACE FUNCTION centile_store.ledger_lanes(p_board_id integer, OUT batches bigint[], OUT times timestamptz[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(coalesce(t.batch, 0) ORDER BY n), array_agg(coalesce(t.at, '2000-01-01 00:00:00+00') ORDER BY n)
    FROM centile_store.boards b
    CROSS JOIN generate_series(0, b.lanes - 1) AS n
    LEFT JOIN (SELECT t.lane, max(t.batch) AS batch, max(t.at) AS at
               FROM (SELECT t.lane, t.batch, t.occurred_at AS at FROM centile_store.score_transactions t WHERE t.board_id = p_board_id
                     UNION ALL
                     SELECT m.lane, m.batch, nullif(m.changed_at, '-infinity') FROM centile_store.segment_members m WHERE m.board_id = p_board_id) t
               GROUP BY t.lane) t ON t.lane = n
    WHERE b.id = p_board_id
$$;

COMMENT ON FUNCTION centile_store.ledger_lanes(integer) IS
'Last batch and time of each lane according to the ledger, lane 0 first. Example: SELECT cardinality(batches) AS lanes FROM centile_store.ledger_lanes(1);';
