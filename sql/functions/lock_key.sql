-- Numbers beyond 31 bits share keys with smaller ones. Two imports or rebuilds with the same key never
-- run at once: the second fails, and may be repeated.
CREATE OR REPLACE FUNCTION centile_store.lock_key(p_id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (p_id & 2147483647)::integer;

COMMENT ON FUNCTION centile_store.lock_key(bigint) IS
'Second key of the advisory lock of an import or a rebuild. Example: SELECT centile_store.lock_key(5000000000);';
