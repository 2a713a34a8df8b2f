-- Takes events that are due, one a board, for the caller to send. One a board, so that each receiver gets its events one after
-- another, oldest first; in random order, so that no board always waits behind others. Whoever takes an event has a minute, the
-- lease: it is due again after it, so that a crash leads to another attempt, not to none. Nobody waits for anybody: what
-- another caller is just taking is passed over.
--
-- What is due later than p_due_by is left alone: a run that gives the time of its start comes to an end, whatever fails.
CREATE FUNCTION centile_store.claim_deliveries(p_limit integer DEFAULT 16, p_due_by timestamptz DEFAULT NULL)
RETURNS TABLE (event_id bigint, board text, url text, secret bytea, body text, attempt integer)
LANGUAGE sql VOLATILE
AS $$
    WITH due AS MATERIALIZED (
        SELECT o.id, w.board_id, w.url, w.secret
        FROM (SELECT * FROM centile_store.webhooks ORDER BY random()) w
        CROSS JOIN LATERAL (
            SELECT o.id FROM centile_store.outbox o
            WHERE o.board_id = w.board_id AND o.delivered_at IS NULL
              AND o.next_attempt_at <= least(p_due_by, statement_timestamp())
            ORDER BY o.next_attempt_at, o.id LIMIT 1
            FOR UPDATE SKIP LOCKED) o
        LIMIT p_limit
    )
    UPDATE centile_store.outbox AS o
    SET attempts = o.attempts + 1, next_attempt_at = statement_timestamp() + interval '1 minute'
    FROM due
    JOIN centile_store.boards b ON b.id = due.board_id
    WHERE o.id = due.id
    RETURNING o.id, b.slug, due.url, due.secret, o.payload::text, o.attempts
$$;

COMMENT ON FUNCTION centile_store.claim_deliveries(integer, timestamptz) IS
'Takes events that are due, to be sent within a minute: the exact text, where to, and what it is signed with. Example: SELECT event_id, board, url, body, attempt FROM centile_store.claim_deliveries(16);';
