CREATE OR REPLACE FUNCTION centile_store.key_min() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN -9223372036854775808;

COMMENT ON FUNCTION centile_store.key_min() IS
'Lower end of rank keys, tie keys and user keys. Example: SELECT centile_store.key_min();';
