-- Snapshots are made from the standings of all time instead of the whole ledger: only players with
-- rows after a cut-off, or after a snapshot's end, are computed again. NULL in rows that an earlier
-- release has written.
ALTER TABLE centile_store.cut_offs ADD COLUMN ledger_end bigint, ADD COLUMN last_at timestamptz;
COMMENT ON COLUMN centile_store.cut_offs.ledger_end IS
    'The highest id in the ledger at the first cut-off; rows of the board after it have higher ids. '
    'A refresh does not change it.';
COMMENT ON COLUMN centile_store.cut_offs.last_at IS
    'Time of the board''s last transaction up to ledger_end.';

COMMENT ON SCHEMA centile_archive IS
    'One archive per closed period: a materialized view, or a table of which dumps contain the rows.';
