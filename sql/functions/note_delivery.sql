-- A delivered message stays delivered, even if an earlier attempt reports a failure later. A message
-- that a new webhook must not get ('infinity') stays undelivered.
CREATE OR REPLACE FUNCTION centile_store.note_delivery(p_message_id bigint, p_status integer, p_error text) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    UPDATE centile_store.outbox
    SET delivered_at = CASE WHEN p_status BETWEEN 200 AND 299 THEN clock_timestamp() END,
        next_attempt_at = CASE WHEN p_status BETWEEN 200 AND 299 OR next_attempt_at = 'infinity' THEN next_attempt_at
                               ELSE clock_timestamp() + centile_store.retry_delay(attempts, random()) END,
        last_status = p_status, last_error = left(p_error, 500)
    WHERE id = p_message_id AND delivered_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.note_delivery(bigint, integer, text) IS
'Records the result of an attempt to deliver a message: the status of the response, or the error. Example: SELECT centile_store.note_delivery(1, 503, NULL);';
