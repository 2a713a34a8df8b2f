-- Boards with their rules.
CREATE VIEW centile.boards AS
SELECT id AS board_id, slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max, layout_bounds, created_at
FROM centile_store.boards;

COMMENT ON VIEW centile.boards IS 'Boards and their rules. Example: SELECT slug, mode, score_order, ties, periods, lanes, time_zone FROM centile.boards ORDER BY slug;';
GRANT SELECT ON centile.boards TO centile_reader;
