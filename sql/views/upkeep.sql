-- A period is closed a moment after it ends, so oldest_due_age should stay small. The counts should
-- too.
CREATE OR REPLACE VIEW centile.upkeep AS
SELECT d.periods_due, d.oldest_due_age, w.windows_missing,
       (SELECT count(*) FROM centile_store.combinations c WHERE c.failures > 0) AS combinations_failing, d.closings_unfinished, d.archive_differences, d.archives_to_refresh,
       i.imports_open, i.imports_cut_short,
       (SELECT count(*) FROM centile_store.rankings r WHERE r.released_at IS NOT NULL) AS released_rankings,
       o.outbox_waiting, o.outbox_oldest_age,
       (SELECT count(*) FROM centile_store.quarantine q WHERE q.state = 'waiting') AS quarantine_waiting,
       (SELECT count(*) FROM centile_store.rankings r WHERE r.damaged_at IS NOT NULL AND r.released_at IS NULL) AS rankings_damaged,
       (SELECT statement_timestamp() - min(l.behind_since) FROM centile.apply_lag l) AS unapplied_age,
       (SELECT statement_timestamp() - i.submitted_at FROM centile_store.inbox i ORDER BY i.number LIMIT 1) AS inbox_age
FROM (
    SELECT count(*) FILTER (WHERE p.is_due) AS periods_due,
           statement_timestamp() - min(p.ends_at) FILTER (WHERE p.is_due) AS oldest_due_age,
           count(*) FILTER (WHERE p.state = 'open' AND p.cut_off_at IS NOT NULL) AS closings_unfinished,
           coalesce(sum(p.archive_differences), 0)::bigint AS archive_differences,
           count(*) FILTER (WHERE p.frozen_top IS NOT NULL AND p.corrected_at IS NOT NULL) AS archives_to_refresh
    FROM (SELECT p.*, p.state = 'open' AND p.ends_at <= statement_timestamp()
                 -- A season that was over when it was created has an hour for its import, as in
                 -- centile_store.due_periods.
                 AND (p.ends_at > g.created_at OR p.kind <> 'season' OR g.created_at < statement_timestamp() - interval '1 hour')
                 AND (p.kind <> 'rolling' OR b.kept_archives ? 'rolling') AS is_due
          FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
          LEFT JOIN centile_store.rankings g ON g.id = p.ranking_id) p) d
CROSS JOIN (
    SELECT count(*) AS windows_missing
    FROM centile_store.boards b
    CROSS JOIN unnest(b.rolling) AS r (length)
    CROSS JOIN LATERAL centile.rolling_window(r.length, statement_timestamp(), b.time_zone) AS c
    WHERE NOT EXISTS (SELECT FROM centile_store.periods p
                      WHERE p.board_id = b.id AND p.kind = 'rolling' AND p.label = c.label AND p.state = 'open')) w
CROSS JOIN (
    -- An import holds a lock while its session lives; readers may not call centile_store.is_locked.
    SELECT count(*) AS imports_open, count(*) FILTER (WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_locks l
        WHERE l.locktype = 'advisory' AND l.classid = 1128615509 AND l.objid = (i.id & 2147483647)::oid AND l.objsubid = 2
          AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))) AS imports_cut_short
    FROM centile_store.imports i WHERE i.ended_at IS NULL AND i.abandoned_at IS NULL) i
CROSS JOIN (
    -- Without a webhook, no message waits.
    SELECT count(*) AS outbox_waiting, statement_timestamp() - min(o.created_at) AS outbox_oldest_age
    FROM centile_store.outbox o JOIN centile_store.webhooks w ON w.board_id = o.board_id
    WHERE o.delivered_at IS NULL AND isfinite(o.next_attempt_at)) o;

COMMENT ON VIEW centile.upkeep IS
'Pending work of maintenance in one row, for alarms and metrics. Example: SELECT periods_due, windows_missing, closings_unfinished, archive_differences, archives_to_refresh, imports_open, imports_cut_short, released_rankings, outbox_waiting, quarantine_waiting FROM centile.upkeep;';
GRANT SELECT ON centile.upkeep TO centile_reader;
