-- One row for alarms and metrics: what closing, refreshing, importing, removing and delivering have left to do. A period is
-- closed a moment after it ends, so oldest_due_age should stay small; so should the others.
CREATE VIEW centile.upkeep AS
SELECT d.periods_due, d.oldest_due_age, d.closings_unfinished, d.archive_differences, d.archives_to_refresh,
       (SELECT count(*) FROM centile_store.imports i WHERE i.ended_at IS NULL AND i.abandoned_at IS NULL) AS imports_open,
       (SELECT count(*) FROM centile_store.rankings r WHERE r.released_at IS NOT NULL) AS released_rankings,
       o.outbox_waiting, o.outbox_oldest_age
FROM (
    SELECT count(*) FILTER (WHERE p.state = 'open' AND p.ends_at <= statement_timestamp()) AS periods_due,
           statement_timestamp() - min(p.ends_at) FILTER (WHERE p.state = 'open' AND p.ends_at <= statement_timestamp()) AS oldest_due_age,
           count(*) FILTER (WHERE p.state = 'open' AND p.cut_off_at IS NOT NULL) AS closings_unfinished,
           coalesce(sum(p.archive_differences), 0)::bigint AS archive_differences,
           count(*) FILTER (WHERE p.frozen_top IS NOT NULL AND p.corrected_at > p.cut_off_at) AS archives_to_refresh
    FROM centile_store.periods p) d
CROSS JOIN (
    SELECT count(*) AS outbox_waiting, statement_timestamp() - min(o.created_at) AS outbox_oldest_age
    FROM centile_store.outbox o WHERE o.delivered_at IS NULL) o;

COMMENT ON VIEW centile.upkeep IS
'What is left to do, in one row: for alarms and metrics. Example: SELECT periods_due, closings_unfinished, archive_differences, archives_to_refresh, imports_open, released_rankings, outbox_waiting FROM centile.upkeep;';
GRANT SELECT ON centile.upkeep TO centile_reader;
