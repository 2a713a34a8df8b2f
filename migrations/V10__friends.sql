-- Friends: directed edges between players, for rankings among friends.

-- No foreign keys: users are never deleted, and checking each edge would double the cost of a list.
CREATE TABLE centile_store.friends (
    user_id   bigint NOT NULL,
    friend_id bigint NOT NULL,
    CONSTRAINT friends_pkey PRIMARY KEY (user_id, friend_id),
    CONSTRAINT friends_not_self CHECK (user_id <> friend_id)
);
COMMENT ON TABLE centile_store.friends IS
    'Friends of players: friend_id is a friend of user_id. The other direction is a row of its own.';

-- Finds the edges to a player who is erased.
CREATE INDEX friends_friend_idx ON centile_store.friends (friend_id, user_id);

GRANT SELECT, INSERT, DELETE ON centile_store.friends TO centile_service;
