-- Writers no longer cache layouts, so nothing has to recognize one after a restore.
ALTER TABLE centile_store.rankings DROP COLUMN laid_out_at;
