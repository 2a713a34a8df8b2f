SELECT centile_store.note_epoch() AS "epoch!", (pg_current_wal_lsn() - '0/0')::bigint AS "wal!"
