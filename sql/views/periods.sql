CREATE OR REPLACE VIEW centile.periods AS
SELECT b.slug AS board, p.kind, p.label, p.starts_at, p.ends_at,
       CASE WHEN p.state IN ('closed', 'preparing') THEN p.state WHEN p.ends_at <= statement_timestamp() THEN 'due' WHEN p.starts_at > statement_timestamp() OR (p.kind = 'rolling' AND EXISTS (
                SELECT FROM centile.rolling_window(split_part(p.label, '-', 1), statement_timestamp(), b.time_zone) w WHERE w.ends_at < p.ends_at)) THEN 'upcoming' ELSE 'open' END AS state,
       CASE WHEN p.ranking_id IS NULL THEN p.archive_players
            WHEN g.has_bucket_rows THEN (SELECT coalesce(sum(c.players), 0)::bigint
                  FROM centile_store.bucket_counts x, unnest(x.counts) AS c (players) WHERE x.ranking_id = p.ranking_id) END AS players,
       g.layout, p.id AS period_id, p.ranking_id,
       CASE WHEN p.frozen_top IS NOT NULL THEN 'centile_archive.' || p.archive_name END AS archive,
       CASE WHEN p.frozen_top IS NOT NULL THEN p.archive_revision END AS archive_revision,
       CASE p.state WHEN 'closed' THEN p.tiers ELSE b.tiers END AS tiers, p.segment
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
LEFT JOIN centile_store.rankings g ON g.id = p.ranking_id;

COMMENT ON VIEW centile.periods IS
'Periods opened so far, with their players (NULL for an open one without bucket rows) and whether they are upcoming (seasons, and the next rolling window), preparing (rolling windows), open, due (over, not closed) or closed. A closed period keeps the tiers of its closing. segment is empty in a row about all players. Example: SELECT kind, label, state, players, archive, archive_revision FROM centile.periods WHERE board = ''main'' AND segment = '''' ORDER BY starts_at DESC, kind LIMIT 5;';
GRANT SELECT ON centile.periods TO centile_reader;
