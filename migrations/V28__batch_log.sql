-- The log of batches replaces batch_changes. Rank indexes take the changed keys from it instead of
-- looking each entry up.
DROP TABLE centile_store.batch_changes;
CREATE TABLE centile_store.batch_log (
    board_id      integer     NOT NULL,
    lane          smallint    NOT NULL,
    batch         bigint      NOT NULL,
    written_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    changes       integer     NOT NULL,
    ranking_ids   bigint[]    NOT NULL,
    user_ids      bigint[]    NOT NULL,
    was_rank_keys bigint[]    NOT NULL,
    was_tie_keys  bigint[]    NOT NULL,
    rank_keys     bigint[]    NOT NULL,
    tie_keys      bigint[]    NOT NULL,
    CONSTRAINT batch_log_pkey PRIMARY KEY (board_id, lane, batch)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    toast_tuple_target = 8160
);
-- Compressing the keys of a large batch takes longer than writing them.
ALTER TABLE centile_store.batch_log
    ALTER COLUMN ranking_ids SET STORAGE EXTERNAL,
    ALTER COLUMN user_ids SET STORAGE EXTERNAL,
    ALTER COLUMN was_rank_keys SET STORAGE EXTERNAL,
    ALTER COLUMN was_tie_keys SET STORAGE EXTERNAL,
    ALTER COLUMN rank_keys SET STORAGE EXTERNAL,
    ALTER COLUMN tie_keys SET STORAGE EXTERNAL;
COMMENT ON TABLE centile_store.batch_log IS
    'The entries that each batch of a lane changed, with their keys before and after. Maintenance '
    'deletes old rows, but keeps the newest of each lane. A rank index that needs a deleted row '
    'reloads.';
COMMENT ON COLUMN centile_store.batch_log.changes IS 'Number of elements of each array.';
COMMENT ON COLUMN centile_store.batch_log.ranking_ids IS
    'The ranking of each changed entry. NULL in the first element of an act on a player: this '
    'element only names the player.';
COMMENT ON COLUMN centile_store.batch_log.was_rank_keys IS 'NULL for a new entry.';
COMMENT ON COLUMN centile_store.batch_log.rank_keys IS 'NULL for a removed entry.';
GRANT SELECT, INSERT, DELETE ON centile_store.batch_log TO centile_service;
