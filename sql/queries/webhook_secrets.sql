SELECT b.slug AS board, w.secret, w.encrypted
FROM centile_store.webhooks w JOIN centile_store.boards b ON b.id = w.board_id
ORDER BY b.slug
