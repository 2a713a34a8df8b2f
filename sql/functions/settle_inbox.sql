-- p_failed: numbers of the events that were refused or quarantined, with the code, the reason and
-- the id in quarantine of each.
CREATE OR REPLACE FUNCTION centile_store.settle_inbox(p_numbers bigint[], p_failed bigint[], p_codes text[], p_reasons text[], p_quarantine_ids bigint[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    WITH settled AS (
        DELETE FROM centile_store.inbox i WHERE i.number = ANY (p_numbers || p_failed)
        RETURNING i.*)
    INSERT INTO centile_store.inbox_failures (number, points, submitted_at, quarantine_id, board_id, user_id, event_id, code, reason, submitted_by)
    SELECT s.number, s.points, s.submitted_at, f.quarantine_id, s.board_id, s.user_id, s.event_id, f.code, f.reason, s.submitted_by
    FROM unnest(p_failed, p_codes, p_reasons, p_quarantine_ids) AS f (number, code, reason, quarantine_id)
    JOIN settled s ON s.number = f.number
    -- Numbers may repeat if the sequence was set back.
    ON CONFLICT ON CONSTRAINT inbox_failures_pkey DO NOTHING
$$;

COMMENT ON FUNCTION centile_store.settle_inbox(bigint[], bigint[], text[], text[], bigint[]) IS
'Removes events from the inbox that are written, refused or quarantined. Example: SELECT centile_store.settle_inbox(''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
