-- See daily_points.
CREATE OR REPLACE VIEW centile.daily_activity AS
SELECT d.board, d.day, count(*) AS players, sum(d.events)::bigint AS events, sum(d.points) AS points
FROM centile.daily_points d
GROUP BY d.board, d.day;

COMMENT ON VIEW centile.daily_activity IS
'Players who scored, events and points of each day of the board''s time zone, without voided ones. Example: SELECT day, players, events, points FROM centile.daily_activity WHERE board = ''main'' ORDER BY day;';
GRANT SELECT ON centile.daily_activity TO centile_reader;
