-- Whom each frozen top names, and erasures that go on where they were cut short.

-- Erasures ---------------------------------------------------------------------------------------------------------

CREATE TABLE centile_store.erasures (
    user_id        bigint      NOT NULL,
    request_id     text        COLLATE "C",
    request_digest bytea,
    old_id         text,
    last_event_id  bigint      NOT NULL DEFAULT 0,
    next_period_id bigint      NOT NULL DEFAULT 0,
    began_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at        timestamptz,
    CONSTRAINT erasures_pkey PRIMARY KEY (user_id),
    CONSTRAINT erasures_request_id_key UNIQUE (request_id),
    CONSTRAINT erasures_request_id_length CHECK (octet_length(request_id) BETWEEN 1 AND 128),
    CONSTRAINT erasures_forget_when_done CHECK (done_at IS NULL OR old_id IS NULL)
);
COMMENT ON TABLE centile_store.erasures IS
'Players who asked to be forgotten: from which closed period on tops may still name them, by the old id, which is gone once they do not, and up to which event; kept for a while under the id that the caller gave, with a digest of both ids.';
CREATE INDEX erasures_unfinished_idx ON centile_store.erasures (user_id) WHERE done_at IS NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.erasures TO centile_service;

-- Whom tops name ---------------------------------------------------------------------------------------------------

CREATE TABLE centile_store.named_players (
    period_id  bigint   NOT NULL,
    cut_off_at timestamptz,
    user_ids   bigint[] NOT NULL,
    CONSTRAINT named_players_pkey PRIMARY KEY (period_id)
);
COMMENT ON TABLE centile_store.named_players IS
'Players whom the frozen top of a closed period or its event may name, as of a cut-off of the period: with another one they are listed anew.';
-- No list of entries that wait: whoever asks to be forgotten would go through it.
CREATE INDEX named_players_user_ids_idx ON centile_store.named_players USING gin (user_ids) WITH (fastupdate = off);
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.named_players TO centile_service;
-- About a millisecond for each top, and nobody waits: periods and events are only read. What the functions of before freeze from here
-- on has no row, or one of another cut-off, and is listed when somebody is erased.
INSERT INTO centile_store.named_players (period_id, cut_off_at, user_ids)
SELECT p.id, p.cut_off_at, ARRAY(
    SELECT (r.row ->> 'internal_id')::bigint
    FROM jsonb_array_elements(convert_from(p.frozen_top, 'UTF8')::jsonb -> 'rows') AS r (row)
    UNION
    SELECT u.id
    FROM centile_store.outbox o
    CROSS JOIN LATERAL jsonb_array_elements(o.payload -> 'top') AS r (row)
    JOIN centile_store.users u ON u.external_id = r.row ->> 'user_id'
    WHERE o.period_id = p.id)
FROM centile_store.periods p
WHERE p.state = 'closed' AND p.archive_revision > 0;
