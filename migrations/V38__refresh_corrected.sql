-- Whether corrected archives are refreshed without an operator: centile refresh --due, and serve.
ALTER TABLE centile_store.boards
    ADD COLUMN refresh_corrected boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT boards_refresh_corrected_rules CHECK (NOT refresh_corrected OR mode <> 'combined');
COMMENT ON COLUMN centile_store.boards.refresh_corrected IS
    'Whether archives that lack a correction are refreshed by themselves.';
COMMENT ON CONSTRAINT boards_refresh_corrected_rules ON centile_store.boards IS
    'refresh_corrected: does not apply to a combined board';
