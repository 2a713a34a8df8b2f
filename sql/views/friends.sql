CREATE OR REPLACE VIEW centile.friends AS
SELECT u.external_id AS user_id, f.external_id AS friend_id
FROM centile_store.friends e
JOIN centile_store.users u ON u.id = e.user_id
JOIN centile_store.users f ON f.id = e.friend_id;

COMMENT ON VIEW centile.friends IS 'Friends of players, a row per direction. Example: SELECT friend_id FROM centile.friends WHERE user_id = ''ann'' ORDER BY friend_id;';
GRANT SELECT ON centile.friends TO centile_reader;
