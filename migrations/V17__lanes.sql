-- The lane of each row that belongs to a player on a board, in the two tables that lacked it: a
-- cluster (sql/cluster) places rows by lane. NULL in rows that the previous release writes.
ALTER TABLE centile_store.quarantine ADD COLUMN lane smallint;
UPDATE centile_store.quarantine q SET lane = u.lane_hash % b.lanes
FROM centile_store.users u, centile_store.boards b WHERE u.id = q.user_id AND b.id = q.board_id;
COMMENT ON COLUMN centile_store.quarantine.lane IS 'The player''s writer lane.';

ALTER TABLE centile_store.board_players ADD COLUMN lane smallint;
UPDATE centile_store.board_players p SET lane = u.lane_hash % b.lanes
FROM centile_store.users u, centile_store.boards b WHERE u.id = p.user_id AND b.id = p.board_id;
COMMENT ON COLUMN centile_store.board_players.lane IS 'The player''s writer lane.';
