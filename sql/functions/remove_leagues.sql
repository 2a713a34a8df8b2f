-- Up to p_limit rows per call. The league of a deleted board is deleted, too.
CREATE OR REPLACE FUNCTION centile_store.remove_leagues(p_limit integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_id      integer;
    v_removed bigint;
    v_table   text;
BEGIN
    SELECT l.id INTO v_id FROM centile_store.leagues l
    WHERE l.deleted_at IS NOT NULL ORDER BY l.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    FOREACH v_table IN ARRAY '{league_members,league_players,league_cohorts}'::text[] LOOP
        EXECUTE format('DELETE FROM centile_store.%1$I t USING (SELECT x.ctid FROM centile_store.%1$I x WHERE x.league_id = $1 LIMIT $2) o WHERE t.ctid = o.ctid', v_table)
        USING v_id, p_limit;
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
    END LOOP;
    DELETE FROM centile_store.leagues l WHERE l.id = v_id;
    RETURN 1;
END
$$;

COMMENT ON FUNCTION centile_store.remove_leagues(integer) IS
'Deletes some rows of deleted leagues and returns their number; 0 when nothing is left. Example: SELECT centile_store.remove_leagues(1000);';
