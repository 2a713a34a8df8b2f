-- Bans and unbans of one player, one after the other. In a migration of its own: it keeps everybody from the players until its end, and what
-- takes long (V6) is not to be done again for each try to have them.

ALTER TABLE centile_store.users ADD COLUMN ban_act bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN centile_store.users.ban_act IS 'Raised by each ban that follows an unban, to an odd number, and each unban that follows a ban: one that finds another number has been overtaken.';
