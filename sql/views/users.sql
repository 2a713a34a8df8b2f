CREATE OR REPLACE VIEW centile.users AS
SELECT external_id AS user_id, name AS user_name, avatar, metadata, banned_at, created_at, id AS internal_id, attributes, reading
FROM centile_store.users;

COMMENT ON VIEW centile.users IS 'Users with their external ids, their attributes, who may read their profiles, and whether they are banned. Example: SELECT user_id, user_name, banned_at FROM centile.users ORDER BY user_id LIMIT 3;';
GRANT SELECT ON centile.users TO centile_reader;
