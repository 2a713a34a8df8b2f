CREATE OR REPLACE VIEW centile.boards AS
SELECT id AS board_id, slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max, layout_bounds,
       frozen_top_size, kept_archives, reading, events_per_minute, gain_max, on_violation, snapshots, rolling, tags, score_format, description, icon_url, colour, tiers, created_at, segments, buckets, default_period, refresh_corrected, tiebreak_order, tiebreak_sum
FROM centile_store.boards;

COMMENT ON VIEW centile.boards IS
'Boards and their rules. kept_archives limits the archives kept of each kind of period, and gain_max a player''s gain in one period. snapshots is the kind of period at whose end the all-time ranking is archived, and rolling the lengths of rolling windows. tags group boards. score_format, description, icon_url and colour say how to show the board. tiers name parts of its rankings, best first. segments are the attributes of users by which each period also has separate rankings. buckets says which new rankings have bucket rows: all, or only those of all_time. default_period is the kind of period that calls without a period read. refresh_corrected says whether archives that lack a correction are refreshed by themselves. tiebreak_order and tiebreak_sum say how second numbers order equal scores, with ties second. Example: SELECT slug, mode, score_order, ties, periods, lanes, time_zone FROM centile.boards ORDER BY slug;';
GRANT SELECT ON centile.boards TO centile_reader;
