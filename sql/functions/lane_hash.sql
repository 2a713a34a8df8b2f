-- The lane of a player follows from the caller's id alone, so the service needs no look-up.
CREATE OR REPLACE FUNCTION centile.lane_hash(p_external_id text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (get_byte(sha256(convert_to(p_external_id, 'UTF8')), 0) << 8)
    + get_byte(sha256(convert_to(p_external_id, 'UTF8')), 1);

COMMENT ON FUNCTION centile.lane_hash(text) IS
'First two bytes of the SHA-256 of a user id; modulo the board''s lanes it is the player''s lane. Example: SELECT centile.lane_hash(''ann'');';
GRANT EXECUTE ON FUNCTION centile.lane_hash(text) TO centile_reader;
