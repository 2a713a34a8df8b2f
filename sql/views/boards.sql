-- Boards with their rules.
CREATE OR REPLACE VIEW centile.boards AS
SELECT id AS board_id, slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max, layout_bounds,
       frozen_top_size, kept_archives, reading, events_per_minute, gain_max, on_violation, created_at
FROM centile_store.boards;

COMMENT ON VIEW centile.boards IS
'Boards and their rules; kept_archives tells of which kinds not all archives are kept, but the last so many, gain_max of which kinds of period a player''s gain has a limit. Example: SELECT slug, mode, score_order, ties, periods, lanes, time_zone FROM centile.boards ORDER BY slug;';
GRANT SELECT ON centile.boards TO centile_reader;
