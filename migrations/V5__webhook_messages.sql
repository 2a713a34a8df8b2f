-- The rows of the outbox are messages, because an event is always a score event. Renaming a column
-- breaks instances of the previous version; this is acceptable only because nothing is released
-- yet.

ALTER TABLE centile_store.erasures RENAME COLUMN last_event_id TO last_message_id;

COMMENT ON TABLE centile_store.webhooks IS
    'Addresses to which the messages of boards are sent, and the secrets that sign them.';
COMMENT ON TABLE centile_store.outbox IS
    'Messages for webhooks, written in the transaction that they report, delivered at least once.';
COMMENT ON TABLE centile_store.erasures IS
    'Players who asked to be forgotten. Until done_at, tops of closed periods from next_period_id '
    'on and messages up to last_message_id may still name the player by old_id, which is then '
    'deleted. Kept for a while under the id that the caller gave, with a digest of both ids.';
COMMENT ON TABLE centile_store.named_players IS
    'Players whom the frozen top of a closed period or its message may name, as of one cut-off. A '
    'new cut-off lists them again.';
