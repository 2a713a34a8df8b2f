-- Voided scores do not count. Scores before a reset, or of a player who was banned since, do. Days
-- are those of the periods, which centile.local_start cuts.
--
-- The view computes the bounds of each day once, and finds the day of an event by its date in UTC.
-- So it reads the ledger once, or only the requested months or player; on a cluster, all of it. A
-- filter on board, day or user_id comes first.
CREATE OR REPLACE VIEW centile.daily_points AS
SELECT b.slug AS board, d.day, u.external_id AS user_id, u.name AS user_name, count(*) AS events, sum(t.points) AS points
FROM centile.boards b
CROSS JOIN (
    SELECT x.day::date AS day
    FROM (SELECT min(m.month) AS first, max(m.month) AS last FROM centile.ledger_months m) m
    -- Local dates run at most a day before and after those of UTC; no event is later than now.
    CROSS JOIN LATERAL generate_series((m.first - 1)::timestamp,
        least(m.last + interval '1 month', (statement_timestamp() AT TIME ZONE 'UTC')::date + interval '1 day'), interval '1 day') AS x (day)
    WHERE EXISTS (SELECT FROM centile.ledger_months h WHERE x.day BETWEEN h.month - interval '1 day' AND h.month + interval '1 month')) d
-- OFFSET prevents PostgreSQL from computing the bounds for each event.
CROSS JOIN LATERAL (SELECT centile.local_start(d.day, b.time_zone) AS starts_at, centile.local_start(d.day + 1, b.time_zone) AS ends_at OFFSET 0) p
CROSS JOIN LATERAL unnest(ARRAY[d.day - 1, d.day, d.day + 1]) AS c (utc_date)
JOIN centile_store.score_transactions t
    ON t.board_id = b.board_id AND t.kind = 'score'
    AND (t.occurred_at AT TIME ZONE 'UTC')::date = c.utc_date AND t.occurred_at >= p.starts_at AND t.occurred_at < p.ends_at
JOIN centile_store.users u ON u.id = t.user_id
WHERE NOT EXISTS (SELECT FROM centile_store.score_transactions v
                  WHERE v.board_id = t.board_id AND v.user_id = t.user_id AND v.kind = 'void' AND v.voids_id = t.id)
GROUP BY b.slug, d.day, u.external_id, u.name;

COMMENT ON VIEW centile.daily_points IS
'Events and points of each player on each day of the board''s time zone, without voided ones. Example: SELECT day, user_id, events, points FROM centile.daily_points WHERE board = ''main'' AND day BETWEEN ''2024-01-15'' AND ''2024-01-16'' ORDER BY day, points DESC;';
GRANT SELECT ON centile.daily_points TO centile_reader;
