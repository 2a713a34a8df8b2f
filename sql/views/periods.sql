-- Players of a closed period are those of its archive. Of any other period, the last event is that of
-- the board, if it lies in the period: finding an earlier one would read all entries.
CREATE OR REPLACE VIEW centile.periods AS
SELECT b.slug AS board, p.kind, p.label, p.starts_at, p.ends_at,
       CASE WHEN p.state IN ('closed', 'preparing') THEN p.state WHEN p.cut_off_at IS NOT NULL THEN 'closing' WHEN p.ends_at <= statement_timestamp() THEN 'due'
            WHEN p.starts_at > statement_timestamp() OR (p.kind = 'rolling' AND EXISTS (
                SELECT FROM centile.rolling_window(split_part(p.label, '-', 1), statement_timestamp(), b.time_zone) w WHERE w.ends_at < p.ends_at)) THEN 'upcoming' ELSE 'open' END AS state,
       CASE WHEN p.ranking_id IS NULL THEN p.archive_players
            WHEN g.has_bucket_rows THEN (SELECT coalesce(sum(c.players), 0)::bigint
                  FROM centile_store.bucket_counts x, unnest(x.counts) AS c (players) WHERE x.ranking_id = p.ranking_id) END AS players,
       g.layout, p.id AS period_id, p.ranking_id,
       CASE WHEN p.frozen_top IS NOT NULL THEN 'centile_archive.' || p.archive_name END AS archive,
       nullif(p.archive_revision, 0) AS revision,
       CASE p.state WHEN 'closed' THEN p.tiers ELSE b.tiers END AS tiers, p.segment,
       CASE WHEN p.ranking_id IS NOT NULL THEN centile.version_of(p.ranking_id)
            WHEN p.frozen_top IS NOT NULL THEN concat_ws('.', centile.epoch(), 'a' || p.id, p.archive_revision) END AS version,
       e.last_event_at, statement_timestamp() - e.last_event_at AS last_event_age,
       p.archive_differences AS differences,
       CASE WHEN p.state = 'closed' AND p.archive_revision > 0 AND p.archive_dropped_at IS NULL THEN a.oid IS NOT NULL AND p.archive_differences = 0 END AS agrees,
       p.frozen_top IS NOT NULL AND p.corrected_at IS NOT NULL AS needs_refresh, p.closed_at
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
LEFT JOIN centile_store.rankings g ON g.id = p.ranking_id
LEFT JOIN pg_catalog.pg_class a
    ON a.relnamespace = 'centile_archive'::regnamespace AND a.relname = p.archive_name AND a.relkind IN ('m', 'r') AND a.relispopulated
-- A query without these columns does not read the lanes.
LEFT JOIN LATERAL (
    SELECT CASE WHEN p.ranking_id IS NULL THEN p.archive_last_at
                WHEN l.last_at >= p.starts_at AND l.last_at < p.ends_at THEN l.last_at END AS last_event_at
    FROM (SELECT coalesce(centile.last_event_at(b.id, m.last_at), m.last_at) AS last_at
          FROM (SELECT max(x.last_at) AS last_at FROM centile_store.board_lanes x WHERE x.board_id = b.id) m) l) e ON true;

COMMENT ON VIEW centile.periods IS
'State, players, version, last event and archive of every period opened so far. A period is upcoming (seasons, and the next rolling window), preparing (rolling windows), open, due (over, not closed), closing or closed. players is NULL for an open period without bucket rows. The last event is NULL in a closed period of a board with ties second, and in one that is not closed if the board has had later events. A closed period keeps the tiers of its closing. segment is empty in a row about all players. Example: SELECT kind, label, state, players, version, last_event_at, archive, revision, differences, agrees FROM centile.periods WHERE board = ''main'' AND segment = '''' ORDER BY starts_at DESC, kind;';
GRANT SELECT ON centile.periods TO centile_reader;
