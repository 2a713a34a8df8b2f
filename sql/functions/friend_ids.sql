-- plpgsql caches the plans. For mutual friends, the query looks up the reverse of each edge: a player
-- has at most 5,000 friends, but millions of players may have that player as a friend.
CREATE OR REPLACE FUNCTION centile_store.friend_ids(p_user_id bigint, p_mutual boolean) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF NOT p_mutual THEN
        RETURN ARRAY(SELECT e.friend_id FROM centile_store.friends e WHERE e.user_id = p_user_id);
    END IF;
    RETURN ARRAY(
        SELECT e.friend_id FROM centile_store.friends e
        CROSS JOIN LATERAL (SELECT FROM centile_store.friends r WHERE r.user_id = e.friend_id AND r.friend_id = p_user_id LIMIT 1) r
        WHERE e.user_id = p_user_id);
END
$$;

COMMENT ON FUNCTION centile_store.friend_ids(bigint, boolean) IS
'Internal ids of a player''s friends, or only of those who also have the player as a friend. Example: SELECT centile_store.friend_ids(1, false);';
