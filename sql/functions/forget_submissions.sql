-- A part of an erasure. A waiting score would create the player again, or count twice if it was
-- written before a crash and not removed: its id is found only for the same player.
CREATE OR REPLACE FUNCTION centile_store.forget_submissions(p_user text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF EXISTS (SELECT FROM centile_store.inbox i WHERE i.user_id = p_user) THEN
        RAISE EXCEPTION 'submitted scores of the player are not written yet; retry' USING ERRCODE = 'CB001', HINT = 'SELECT * FROM centile.submissions lists them.';
    END IF;
    DELETE FROM centile_store.inbox_failures f WHERE f.user_id = p_user;
END
$$;

COMMENT ON FUNCTION centile_store.forget_submissions(text) IS
'Deletes failed submissions of a player. Example: SELECT centile_store.forget_submissions(''zoe'');';
