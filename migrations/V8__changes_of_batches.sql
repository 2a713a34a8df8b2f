-- The feed of rank indexes: which users' entries each batch changed, and an index by which changed profiles are found.

CREATE TABLE centile_store.batch_changes (
    board_id   integer     NOT NULL,
    lane       smallint    NOT NULL,
    batch      bigint      NOT NULL,
    user_ids   bigint[]    NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT batch_changes_pkey PRIMARY KEY (board_id, lane, batch)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, toast_tuple_target = 8160);
-- Compressing the ids of a large batch takes longer than writing them.
ALTER TABLE centile_store.batch_changes ALTER COLUMN user_ids SET STORAGE EXTERNAL;
COMMENT ON TABLE centile_store.batch_changes IS
'Users whose entries a batch changed, kept for an hour. A rank index that has not seen a batch without a row loads anew.';
GRANT SELECT, INSERT, DELETE ON centile_store.batch_changes TO centile_service;

-- Profiles that were never changed are not in it.
CREATE INDEX users_profile_revision_idx ON centile_store.users (profile_revision) WHERE profile_revision > 0;
