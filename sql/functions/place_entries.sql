-- For a ranking that no other session uses: its entries, bucket rows and counts change together.
CREATE OR REPLACE FUNCTION centile_store.place_entries(p_lane smallint, p_changes centile_store.entry_change[]) RETURNS void
LANGUAGE plpgsql VOLATILE
-- Every look-up is by key, even if the tables were small when PostgreSQL made the plans.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_order   text;
    v_entries record;
BEGIN
    IF cardinality(p_changes) > 0 THEN
        SELECT b.score_order INTO STRICT v_order
        FROM centile_store.rankings r JOIN centile_store.boards b ON b.id = r.board_id WHERE r.id = (p_changes[1]).ranking_id;
        SELECT array_agg(c.ranking_id) AS rankings, array_agg(c.user_id) AS users, array_agg(c.was_rank_key) AS was_keys, array_agg(c.was_tie_key) AS was_ties,
               array_agg(c.rank_key) AS keys, array_agg(c.tie_key) AS ties, array_agg(c.only_zeros) AS zeros
        INTO v_entries FROM unnest(p_changes) AS c;
        PERFORM centile_store.write_entries(p_lane, v_order, v_entries.rankings, v_entries.users, v_entries.was_keys, NULL, v_entries.keys, v_entries.ties, v_entries.zeros);
        PERFORM centile_store.apply_changes(p_lane, NULL, v_entries.rankings, v_entries.users, v_entries.was_keys, v_entries.was_ties, v_entries.keys, v_entries.ties);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.place_entries(smallint, centile_store.entry_change[]) IS
'Writes changed entries of a lane in an unfinished ranking, with their bucket rows and counts. Example: SELECT centile_store.place_entries(0::smallint, ''{}'');';
