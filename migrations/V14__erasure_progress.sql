-- Erasures remove the metadata of a player's events in steps, from one event on.

ALTER TABLE centile_store.erasures
    ADD COLUMN next_board_id integer NOT NULL DEFAULT 0,
    ADD COLUMN last_event_at timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN last_ledger_id bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN centile_store.erasures.next_board_id IS
    'The erasure has removed the metadata of events on boards before this one, and on this one up '
    'to last_event_at and last_ledger_id.';
