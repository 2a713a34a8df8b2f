-- An erasure removes the metadata of earlier batches. It waits for this lock, or this waits for the
-- erasure, and then returns none of the player.
CREATE OR REPLACE FUNCTION centile_store.unerased_metadata(p_events centile_store.pending_event[], p_metadata text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM FROM centile_store.users u WHERE u.id IN (SELECT e.user_id FROM unnest(p_events) e) ORDER BY u.id FOR KEY SHARE;
    RETURN ARRAY(
        SELECT CASE WHEN u.erased_at IS NULL THEN p_metadata[e.ordinality] END
        FROM unnest(p_events) WITH ORDINALITY e LEFT JOIN centile_store.users u ON u.id = e.user_id ORDER BY e.ordinality);
END
$$;

COMMENT ON FUNCTION centile_store.unerased_metadata(centile_store.pending_event[], text[]) IS
'Metadata of pending events without those of erased players. Example: SELECT centile_store.unerased_metadata(''{}'', ''{}'');';
