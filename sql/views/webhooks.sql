CREATE OR REPLACE VIEW centile.webhooks AS
SELECT b.slug AS board, w.url, w.created_at
FROM centile_store.webhooks w
JOIN centile_store.boards b ON b.id = w.board_id;

COMMENT ON VIEW centile.webhooks IS 'The URL that receives the messages of a board. Example: SELECT board, url FROM centile.webhooks ORDER BY board;';
GRANT SELECT ON centile.webhooks TO centile_reader;
