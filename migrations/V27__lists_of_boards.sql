-- Lists of boards read only what they show: the boards with a tag, and the public ones in order.
-- fastupdate is off, because each read would scan the pending list; boards change rarely.
CREATE INDEX boards_tags ON centile_store.boards USING gin (tags) WITH (fastupdate = off);
CREATE INDEX boards_public ON centile_store.boards (slug) WHERE reading = 'public';
