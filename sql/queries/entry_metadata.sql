-- Metadata of the events that decide entries. Entries without metadata have no row.
SELECT n AS "n!", metadata::text AS "metadata!"
FROM centile_store.entry_metadata($1, $2, $3, $4, $5, $6, $7, $8)
