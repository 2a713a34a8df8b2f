-- Verification reads the ledger of a closed period once for each revision of its archive.
ALTER TABLE centile_store.cut_offs ADD COLUMN verified_revision integer;
COMMENT ON COLUMN centile_store.cut_offs.verified_revision IS
    'Revision of the archive that agreed with the ledger when it was last verified; 0 after damage '
    'was found.';
