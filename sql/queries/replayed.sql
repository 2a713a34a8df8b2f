-- A server that is not in recovery must be the primary itself.
SELECT CASE
           WHEN NOT EXISTS (SELECT FROM centile_store.epochs e WHERE e.epoch = $1) THEN NULL
           WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0')::bigint
           WHEN centile.epoch() = $1 THEN (pg_current_wal_lsn() - '0/0')::bigint
       END AS replayed
