-- Who may read a profile belongs to the profile, not to the boards.
ALTER TABLE centile_store.users
    ADD COLUMN reading text COLLATE "C",
    ADD CONSTRAINT users_reading_known CHECK (reading IN ('public', 'key')) NOT VALID;
COMMENT ON COLUMN centile_store.users.reading IS
    'Readers of the profile: public for everyone, key for holders of any key. NULL: those that serve --profiles names.';

-- Tells at once whether every board is public.
CREATE INDEX boards_private ON centile_store.boards (slug) WHERE reading = 'key';
