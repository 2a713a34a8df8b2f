CREATE OR REPLACE FUNCTION centile_store.key_max() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 9223372036854775807;

COMMENT ON FUNCTION centile_store.key_max() IS
'Upper end of rank keys, tie keys and user keys. Example: SELECT centile_store.key_max();';
