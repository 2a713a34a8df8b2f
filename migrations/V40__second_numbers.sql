-- Boards with ties `second` order equal scores by a second number of each event. The ledger stores
-- the number beside `tiebreak`, whose type cannot change while archives read the column.

ALTER TABLE centile_store.boards
    ADD COLUMN tiebreak_order text,
    ADD COLUMN tiebreak_sum   text;
COMMENT ON COLUMN centile_store.boards.tiebreak_order IS
    'Which second numbers are better, desc or asc; NULL on boards without them.';
COMMENT ON COLUMN centile_store.boards.tiebreak_sum IS
    'Whether the second numbers of a sum board are added or replaced; NULL on other boards.';
ALTER TABLE centile_store.boards
    DROP CONSTRAINT boards_ties_known,
    ADD CONSTRAINT boards_ties_known CHECK (ties IN ('shared', 'first', 'tiebreak', 'second')),
    DROP CONSTRAINT boards_combined_rules,
    ADD CONSTRAINT boards_combined_rules CHECK (
        mode <> 'combined'
        OR (periods = '{all_time}' AND lanes = 1 AND ties IN ('shared', 'first') AND snapshots IS NULL
            AND rolling = '{}')),
    ADD CONSTRAINT boards_tiebreak_order_known CHECK (tiebreak_order IN ('desc', 'asc')),
    ADD CONSTRAINT boards_tiebreak_order_rules CHECK (
        (tiebreak_order IS NOT NULL) = (ties = 'second')),
    ADD CONSTRAINT boards_tiebreak_sum_known CHECK (tiebreak_sum IN ('added', 'replaced')),
    ADD CONSTRAINT boards_tiebreak_sum_rules CHECK (
        (tiebreak_sum IS NOT NULL) = (ties = 'second' AND mode = 'sum'));
COMMENT ON CONSTRAINT boards_ties_known ON centile_store.boards IS
    'ties: must be shared, first, tiebreak or second';
COMMENT ON CONSTRAINT boards_tiebreak_needs_single_event ON centile_store.boards IS
    'ties: a sum board has no tiebreak; use ties second, or mode best or latest';
COMMENT ON CONSTRAINT boards_combined_rules ON centile_store.boards IS
    'mode: a combined board keeps all_time only, and has one lane, ties shared or first, and '
    'neither snapshots nor rolling windows';
COMMENT ON CONSTRAINT boards_tiebreak_order_known ON centile_store.boards IS
    'tiebreak_order: must be desc or asc';
COMMENT ON CONSTRAINT boards_tiebreak_order_rules ON centile_store.boards IS
    'tiebreak_order: only a board with ties second has it';
COMMENT ON CONSTRAINT boards_tiebreak_sum_known ON centile_store.boards IS
    'tiebreak_sum: must be added or replaced';
COMMENT ON CONSTRAINT boards_tiebreak_sum_rules ON centile_store.boards IS
    'tiebreak_sum: only a sum board with ties second has it';

ALTER TYPE centile_store.ranking_row ADD ATTRIBUTE tiebreak bigint;
ALTER TYPE centile_store.pending_event ALTER ATTRIBUTE tiebreak TYPE bigint;
ALTER TABLE centile_store.inbox ALTER COLUMN tiebreak TYPE bigint;

ALTER TABLE centile_store.archive_differences
    ADD COLUMN archive_tiebreak bigint,
    ADD COLUMN live_tiebreak    bigint;
ALTER TABLE centile_store.quarantine ADD COLUMN second_number bigint;
COMMENT ON COLUMN centile_store.quarantine.second_number IS
    'The tiebreak of an event on a board with ties second.';
ALTER TABLE centile_store.score_transactions ADD COLUMN second_number bigint;
COMMENT ON COLUMN centile_store.score_transactions.second_number IS
    'The tiebreak of a score on a board with ties second.';
