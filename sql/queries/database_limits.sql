SELECT coalesce(extract(epoch FROM clock_behind), 0)::float8 AS "clock_behind_seconds!", xid_age AS "xid_age!", xid_age_max AS "xid_age_max!", coalesce(dead_rows, 0) AS "dead_rows!", coalesce(live_rows, 0) AS "live_rows!",
       coalesce(extract(epoch FROM oldest_snapshot_age), 0)::float8 AS "oldest_snapshot_age_seconds!",
       relations AS "relations!", relations_max AS "relations_max!", coalesce(user_id, 0) AS "user_id!", user_id_max AS "user_id_max!"
FROM centile.database_limits
