CREATE OR REPLACE FUNCTION centile_store.version_text(p_batches bigint[]) RETURNS text
LANGUAGE sql STABLE
RETURN concat_ws('.', centile.epoch(), left(encode(sha256(convert_to(array_to_string(p_batches, '-'), 'UTF8')), 'hex'), 16));

COMMENT ON FUNCTION centile_store.version_text(bigint[]) IS
'The version of the state with these batches, one per lane: the epoch and a digest. Example: SELECT centile_store.version_text(''{7,9}'');';
