-- Lists of boards read only what they show: the boards with a tag, and the public ones in order.
-- Without a list of pending entries, which each read would scan: boards change rarely.
CREATE INDEX boards_tags ON centile_store.boards USING gin (tags) WITH (fastupdate = off);
CREATE INDEX boards_public ON centile_store.boards (slug) WHERE reading = 'public';
