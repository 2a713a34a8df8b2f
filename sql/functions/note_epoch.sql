-- In plpgsql because plpgsql keeps its plans: each instance with a replica calls the function four
-- times a second.
CREATE OR REPLACE FUNCTION centile_store.note_epoch() RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_epoch text := centile.epoch();
BEGIN
    IF NOT EXISTS (SELECT FROM centile_store.epochs e WHERE e.epoch = v_epoch) THEN
        INSERT INTO centile_store.epochs (epoch) VALUES (v_epoch) ON CONFLICT DO NOTHING;
    END IF;
    RETURN v_epoch;
END
$$;

COMMENT ON FUNCTION centile_store.note_epoch() IS
'Records the epoch of this primary for its replicas, and returns it. Example: SELECT centile_store.note_epoch();';
