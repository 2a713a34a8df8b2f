-- Writers identified cached layouts by this time. They no longer cache layouts.
ALTER TABLE centile_store.rankings DROP COLUMN laid_out_at;
