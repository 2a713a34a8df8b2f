-- Users by their internal ids and by the callers' ids, with the epoch and the profile revision of
-- the same snapshot. One row without a user if there is none.
SELECT centile.epoch() AS "epoch!", v.revision AS "revision!", u.id AS "id?", u.external_id AS "external_id?", u.name AS "name?", u.avatar AS "avatar?"
FROM centile_store.profile_revision v
LEFT JOIN LATERAL (
    SELECT u.* FROM unnest($1::bigint[]) AS w (id) CROSS JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.id = w.id LIMIT 1) u
    UNION ALL
    SELECT u.* FROM unnest($2::text[]) AS w (id) CROSS JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.external_id = w.id LIMIT 1) u) u ON true
