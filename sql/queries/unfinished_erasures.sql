-- Players whose erasure is under way or was interrupted.
SELECT u.external_id FROM centile_store.erasures e JOIN centile_store.users u ON u.id = e.user_id
WHERE e.done_at IS NULL ORDER BY e.user_id LIMIT 1000
