-- Whether an import of a board has begun and neither ended nor been abandoned: until then none of its periods is closed.
CREATE OR REPLACE FUNCTION centile_store.has_import(p_board_id integer) RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM centile_store.imports i
               WHERE i.board_id = p_board_id AND i.ended_at IS NULL AND i.abandoned_at IS NULL);

COMMENT ON FUNCTION centile_store.has_import(integer) IS
'Whether an import of a board is under way, or was cut short. Example: SELECT centile_store.has_import(1);';
