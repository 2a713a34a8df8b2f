-- One message of a board, oldest first, so that a caller sends them to the receiver one by one.
-- Boards come in random order, so that none always waits behind others; boards with a failed
-- message come last, so that receivers that do not answer cannot use up p_limit. The caller has a
-- minute. Then the message is due again, so a crash leads to another attempt. Messages that another
-- caller is claiming are skipped.
--
-- p_except: boards that the caller is sending to, and those whose receivers have failed in this
-- run. So a run ends, and a receiver that hangs costs it one timeout.
CREATE OR REPLACE FUNCTION centile_store.claim_deliveries(p_limit integer DEFAULT 16, p_except text[] DEFAULT '{}')
RETURNS TABLE (message_id bigint, board text, url text, secret bytea, encrypted boolean, body text, attempt integer)
LANGUAGE sql VOLATILE
AS $$
    WITH due AS MATERIALIZED (
        SELECT o.id, w.slug, w.url, w.secret, w.encrypted
        FROM (
            SELECT h.board_id, h.url, h.secret, h.encrypted, b.slug
            FROM centile_store.webhooks h
            JOIN centile_store.boards b ON b.id = h.board_id
            WHERE b.slug <> ALL (p_except)
            ORDER BY EXISTS (
                SELECT FROM centile_store.outbox f
                WHERE f.board_id = h.board_id AND f.delivered_at IS NULL AND f.next_attempt_at < 'infinity' AND f.attempts > 0),
                random()) w
        CROSS JOIN LATERAL (
            SELECT o.id FROM centile_store.outbox o
            WHERE o.board_id = w.board_id AND o.delivered_at IS NULL AND o.next_attempt_at <= statement_timestamp()
            ORDER BY o.next_attempt_at, o.id LIMIT 1
            FOR UPDATE SKIP LOCKED) o
        LIMIT p_limit
    )
    UPDATE centile_store.outbox AS o
    SET attempts = o.attempts + 1, next_attempt_at = statement_timestamp() + interval '1 minute'
    FROM due
    WHERE o.id = due.id
    RETURNING o.id, due.slug, due.url, due.secret, due.encrypted, centile.message_payload(o.id)::text, o.attempts
$$;

COMMENT ON FUNCTION centile_store.claim_deliveries(integer, text[]) IS
'Claims due messages for a minute: the exact text, the URL and the secret that signs it. Example: SELECT message_id, board, url, body, attempt FROM centile_store.claim_deliveries(16);';
