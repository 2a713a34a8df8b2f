SELECT periods_due AS "periods_due!", coalesce(extract(epoch FROM oldest_due_age), 0)::float8 AS "oldest_due_age_seconds!", windows_missing AS "windows_missing!", combinations_failing AS "combinations_failing!",
       closings_unfinished AS "closings_unfinished!", archive_differences AS "archive_differences!",
       archives_to_refresh AS "archives_to_refresh!", imports_open AS "imports_open!", imports_cut_short AS "imports_cut_short!",
       released_rankings AS "released_rankings!", outbox_waiting AS "outbox_waiting!",
       coalesce(extract(epoch FROM outbox_oldest_age), 0)::float8 AS "outbox_oldest_age_seconds!",
       quarantine_waiting AS "quarantine_waiting!", rankings_damaged AS "rankings_damaged!",
       coalesce(extract(epoch FROM unapplied_age), 0)::float8 AS "unapplied_age_seconds!",
       coalesce(extract(epoch FROM inbox_age), 0)::float8 AS "inbox_age_seconds!"
FROM centile.upkeep
