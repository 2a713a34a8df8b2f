-- A board of a template has the rules of the template.
CREATE OR REPLACE VIEW centile.boards AS
SELECT n.id AS board_id, n.slug, n.title, b.mode, b.score_order, b.ties, b.periods, b.lanes, b.time_zone, b.points_min, b.points_max, b.layout_bounds,
       b.frozen_top_size, b.kept_archives, b.reading, b.events_per_minute, b.gain_max, b.on_violation, b.snapshots, b.rolling, b.tags, b.score_format, b.description, b.icon_url, b.colour,
       b.tiers, b.created_at, b.segments, b.buckets, b.default_period, b.refresh_corrected, b.tiebreak_order, b.tiebreak_sum, n.template, n.owner_id
FROM (SELECT o.id, o.slug, o.title, o.id AS owner_id, NULL::text AS template FROM centile_store.boards o WHERE NOT o.is_template AND o.deleted_at IS NULL
      UNION ALL
      SELECT o.id, o.slug, o.slug, o.template_id, t.name FROM centile_store.template_boards o JOIN centile_store.templates t ON t.board_id = o.template_id) n
JOIN centile_store.boards b ON b.id = n.owner_id;

COMMENT ON VIEW centile.boards IS
'Boards and their rules. kept_archives limits the archives kept of each kind of period, and gain_max a player''s gain in one period. snapshots is the kind of period at whose end the all-time ranking is archived, and rolling the lengths of rolling windows. tags group boards. score_format, description, icon_url and colour say how to show the board. tiers name parts of its rankings, best first. segments are the attributes of users by which each period also has separate rankings. buckets says which new rankings have bucket rows: all, or only those of all_time. default_period is the kind of period that calls without a period read. refresh_corrected says whether archives that lack a correction are refreshed by themselves. tiebreak_order and tiebreak_sum say how second numbers order equal scores, with ties second. template names the template of a board; owner_id is that of the board whose lanes and periods it uses: its own or that of its template. Example: SELECT slug, mode, score_order, ties, periods, lanes, time_zone FROM centile.boards ORDER BY slug;';
GRANT SELECT ON centile.boards TO centile_reader;
