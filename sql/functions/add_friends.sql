-- Locks all players first. So calls for the same player run one after another. A concurrent erasure
-- either commits first, and the edge is "missing" or "erased", or it waits and removes the new edge.
-- Creates no players. Edges beyond a player's maximum are "full"; they do not affect other edges.
CREATE OR REPLACE FUNCTION centile_store.add_friends(p_user_ids text[], p_friend_ids text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_owners  bigint[] := ARRAY(SELECT u.id FROM centile_store.users u WHERE u.external_id = ANY (p_user_ids) ORDER BY u.id FOR NO KEY UPDATE);
    v_friends bigint[] := ARRAY(SELECT u.id FROM centile_store.users u WHERE u.external_id = ANY (p_friend_ids) ORDER BY u.id FOR KEY SHARE);
    v_added   record;
BEGIN
    WITH owner AS MATERIALIZED (
        SELECT u.id, u.external_id, u.erased_at IS NOT NULL AS is_erased,
               (SELECT count(*) FROM centile_store.friends e WHERE e.user_id = u.id) AS friends
        FROM unnest(v_owners) AS h (id) CROSS JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.id = h.id LIMIT 1) u
    ), friend AS MATERIALIZED (
        SELECT u.id, u.external_id, u.erased_at IS NOT NULL AS is_erased
        FROM unnest(v_friends) AS h (id) CROSS JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.id = h.id LIMIT 1) u
    ), edge AS MATERIALIZED (
        SELECT n.place, o.id AS user_id, f.id AS friend_id, o.friends,
               CASE WHEN n.user_id = n.friend_id THEN 'self'
                    WHEN o.id IS NULL OR f.id IS NULL THEN 'missing'
                    WHEN o.is_erased OR f.is_erased THEN 'erased'
                    WHEN e.is_known THEN 'repeated' END AS result
        FROM unnest(p_user_ids, p_friend_ids) WITH ORDINALITY AS n (user_id, friend_id, place)
        LEFT JOIN owner o ON o.external_id = n.user_id
        LEFT JOIN friend f ON f.external_id = n.friend_id
        LEFT JOIN LATERAL (SELECT true AS is_known FROM centile_store.friends e WHERE e.user_id = o.id AND e.friend_id = f.id LIMIT 1) e ON true
    ), new AS MATERIALIZED (
        SELECT e.user_id, e.friend_id, e.place, e.friends + row_number() OVER (PARTITION BY e.user_id ORDER BY e.place) <= 5000 AS fits
        FROM (SELECT DISTINCT ON (e.user_id, e.friend_id) e.* FROM edge e WHERE e.result IS NULL ORDER BY e.user_id, e.friend_id, e.place) e
    )
    SELECT array_agg(coalesce(e.result, CASE WHEN NOT n.fits THEN 'full' WHEN n.place = e.place THEN 'added' ELSE 'repeated' END)
                     ORDER BY e.place) AS results,
           array_agg(n.user_id) FILTER (WHERE n.fits AND n.place = e.place) AS user_ids,
           array_agg(n.friend_id) FILTER (WHERE n.fits AND n.place = e.place) AS friend_ids
    INTO v_added
    FROM edge e LEFT JOIN new n ON e.result IS NULL AND n.user_id = e.user_id AND n.friend_id = e.friend_id;
    INSERT INTO centile_store.friends (user_id, friend_id)
    SELECT * FROM unnest(v_added.user_ids, v_added.friend_ids);
    RETURN coalesce(v_added.results, '{}');
END
$$;

COMMENT ON FUNCTION centile_store.add_friends(text[], text[]) IS
'Adds edges from players to friends and returns the result of each: added, repeated, self, missing, erased or full. Example: SELECT centile_store.add_friends(''{ann,ann}'', ''{dan,ann}'');';
