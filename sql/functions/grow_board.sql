-- Gives the large rankings of a template's board bucket rows, in one bucket; layout steps split it.
-- Reads of a whole ranking have become slow. Applies all batches before writers have to wait. Returns
-- the number of rankings that it has changed. p_players: players of a large ranking.
CREATE OR REPLACE FUNCTION centile_store.grow_board(p_board_id integer, p_players bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_owner    integer := centile_store.owner_of(p_board_id);
    v_rankings bigint[];
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM centile_store.players x WHERE x.board_id = p_board_id LIMIT p_players) x) < p_players THEN
        RETURN 0;
    END IF;
    v_rankings := ARRAY(
        SELECT g.id FROM centile_store.current_rankings c JOIN centile_store.rankings g ON g.id = c.id
        WHERE c.players_of = p_board_id AND c.board_id = v_owner AND v_owner <> p_board_id AND NOT g.has_bucket_rows
          AND centile_store.player_count(g.id) >= p_players);
    IF v_rankings = '{}' THEN
        RETURN 0;
    END IF;
    PERFORM centile_store.lock_buckets(v_owner);
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_owner) a) LOOP END LOOP;
    PERFORM centile_store.lock_structure(v_owner, true);
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_owner) a) LOOP END LOOP;
    -- Without those that another session has changed or closed meanwhile.
    WITH grown AS (
        UPDATE centile_store.rankings g
        SET has_bucket_rows = true, removed_bucket = 0, layout = g.layout + 1, buckets = DEFAULT, low_rank_keys = DEFAULT, low_tie_keys = DEFAULT, low_user_keys = DEFAULT
        FROM centile_store.current_rankings c
        WHERE g.id = ANY (v_rankings) AND NOT g.has_bucket_rows AND c.id = g.id
        RETURNING g.id, g.lanes
    ), counted AS (
        INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
        SELECT g.id, n, array_fill(0, ARRAY[100]) FROM grown g CROSS JOIN generate_series(0, g.lanes - 1) AS n
    )
    SELECT coalesce(array_agg(g.id), '{}') INTO v_rankings FROM grown g;
    PERFORM centile_store.apply_changes(l.lane, NULL, l.rankings, l.users, l.nothing, l.nothing, l.keys, l.ties)
    FROM (SELECT e.lane, array_agg(e.ranking_id) AS rankings, array_agg(e.user_id) AS users, array_agg(NULL::bigint) AS nothing,
                 array_agg(e.rank_key) AS keys, array_agg(e.tie_key) AS ties
          FROM unnest(v_rankings) AS r (id) JOIN centile_store.leaderboard e ON e.ranking_id = r.id GROUP BY e.lane) l;
    RETURN cardinality(v_rankings);
END
$$;

COMMENT ON FUNCTION centile_store.grow_board(integer, bigint) IS
'Gives the large rankings of a template''s board bucket rows. Example: SELECT centile_store.grow_board(1, 1300);';
