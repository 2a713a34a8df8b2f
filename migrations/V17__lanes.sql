-- The lane of each row that belongs to a player on a board, in the two tables that lacked it: a
-- cluster (sql/cluster) places rows by lane. NULL in rows that an earlier release has written.
ALTER TABLE centile_store.quarantine ADD COLUMN lane smallint;
COMMENT ON COLUMN centile_store.quarantine.lane IS 'The player''s writer lane.';

ALTER TABLE centile_store.board_players ADD COLUMN lane smallint;
COMMENT ON COLUMN centile_store.board_players.lane IS 'The player''s writer lane.';
