CREATE OR REPLACE FUNCTION centile_store.is_known(p_board_id integer, p_user_id bigint) RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM centile_store.segment_members m WHERE m.board_id = p_board_id AND m.user_id = p_user_id AND m.segment = '');

COMMENT ON FUNCTION centile_store.is_known(integer, bigint) IS
'Whether a player''s segments on a board are recorded, which happens with the first score. Example: SELECT centile_store.is_known(1, 1);';
