-- Up to p_limit rows, so that no step is long. No session reads them, because every statement
-- checks that its ranking is still its period's.
CREATE OR REPLACE FUNCTION centile_store.remove_released(p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_ranking_id bigint;
    v_removed    bigint := 0;
    v_more       bigint;
    v_bucket     smallint;
BEGIN
    SELECT r.id, r.removed_bucket INTO v_ranking_id, v_bucket FROM centile_store.rankings r
    WHERE r.released_at IS NOT NULL
      -- Never a ranking that a period points to, even if its row is damaged.
      AND NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = r.id)
    ORDER BY r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- A closed period of a template: its boards' rankings without bucket rows come before its own.
    DELETE FROM centile_store.rankings g
    WHERE g.id = ANY (ARRAY(SELECT x.id FROM centile_store.rankings r JOIN centile_store.periods p ON p.id = r.period_id AND p.ranking_id IS NULL
                            JOIN centile_store.rankings x ON x.period_id = r.period_id AND x.players_of <> x.board_id AND NOT x.has_bucket_rows
                            WHERE r.id = v_ranking_id AND r.players_of = r.board_id LIMIT p_limit));
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    -- Continues in the bucket table where the last call ended. Reads all hundred, because a rebuild may
    -- have replaced a damaged layout.
    WHILE v_removed < p_limit AND v_bucket < 100 LOOP
        EXECUTE format(
            'DELETE FROM centile_store.%1$I b
             WHERE b.ctid = ANY (ARRAY(SELECT x.ctid FROM centile_store.%1$I x WHERE x.ranking_id = $1 LIMIT $2))',
            centile_store.bucket_table(v_bucket))
        USING v_ranking_id, p_limit - v_removed;
        GET DIAGNOSTICS v_more = ROW_COUNT;
        IF v_removed + v_more < p_limit THEN
            v_bucket := v_bucket + 1;
        END IF;
        v_removed := v_removed + v_more;
    END LOOP;
    UPDATE centile_store.rankings r SET removed_bucket = v_bucket WHERE r.id = v_ranking_id AND r.removed_bucket <> v_bucket;
    IF v_removed < p_limit THEN
        DELETE FROM centile_store.bucket_counts c WHERE c.ranking_id = v_ranking_id;
        DELETE FROM centile_store.fillings f WHERE f.ranking_id = v_ranking_id;
        DELETE FROM centile_store.rankings r WHERE r.id = v_ranking_id;
        v_removed := v_removed + 1;
    END IF;
    RETURN v_removed;
END
$$;

COMMENT ON FUNCTION centile_store.remove_released(integer) IS
'Deletes some rows of released rankings and returns their number; 0 when nothing is left. Example: SELECT centile_store.remove_released();';
