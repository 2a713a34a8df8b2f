SELECT kind, nullif(starts_at, '-infinity') AS starts_at, nullif(ends_at, 'infinity') AS ends_at
FROM centile_store.periods WHERE board_id = $1 AND segment = '' AND kind NOT IN ('season', 'snapshot', 'rolling')
