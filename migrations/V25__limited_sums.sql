-- only_zeros has a second meaning: see centile_store.entries_of.
COMMENT ON TABLE centile_store.leaderboard IS
    'Entries: one player''s standing in one ranking. only_zeros: no event counts that has points '
    'other than 0; with a score other than 0: the sum lies beyond 64 bits and stopped at its limit.';
