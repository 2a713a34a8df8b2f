-- Brings the bucket rows of a new ranking up to the last batches. Then, under the exclusive structure
-- lock, makes it the current one of its period, releases the old one and returns its id (0 if there
-- was none). Returns NULL if more than p_limit logged changes are left: call fill_rows first. Raises
-- the batch of every lane: the new ranking may differ from the old one, and no version may mean two
-- states. These batches count as applied.
CREATE OR REPLACE FUNCTION centile_store.swap_ranking(p_ranking_id bigint, p_limit integer DEFAULT 500) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_ranking centile_store.rankings;
    v_period  centile_store.periods;
BEGIN
    SELECT * INTO STRICT v_ranking FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    -- Apply most of the log before writers have to wait.
    PERFORM centile_store.lock_buckets(v_ranking.board_id);
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_ranking.board_id) a) LOOP END LOOP;
    PERFORM centile_store.fill_rows(p_ranking_id, n::smallint) FROM generate_series(0, v_ranking.lanes - 1) AS n;
    PERFORM centile_store.lock_structure(v_ranking.board_id, true);
    SELECT p.* INTO v_period FROM centile_store.rankings g JOIN centile_store.periods p ON p.id = g.period_id
    WHERE g.id = p_ranking_id AND g.released_at IS NULL;
    IF NOT FOUND OR v_period.state = 'closed' OR v_period.ranking_id = p_ranking_id THEN
        RAISE EXCEPTION 'the period was closed, or another session has rebuilt it' USING ERRCODE = 'CB409';
    ELSIF EXISTS (SELECT FROM centile_store.fillings f WHERE f.board_id = v_ranking.board_id AND f.ranking_id = p_ranking_id
                  AND least(f.standings_up_to, f.rows_up_to) < centile_store.key_max()) THEN
        RAISE EXCEPTION 'ranking % is not complete yet', p_ranking_id USING ERRCODE = 'CB409';
    ELSIF (SELECT sum(c.changes) > p_limit FROM centile_store.fillings f
           JOIN centile_store.batch_log c ON c.board_id = f.board_id AND c.lane = f.lane AND c.batch > f.batch
           WHERE f.board_id = v_ranking.board_id AND f.ranking_id = p_ranking_id) THEN
        RETURN NULL;
    END IF;
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_ranking.board_id) a) LOOP END LOOP;
    PERFORM centile_store.fill_rows(p_ranking_id, n::smallint) FROM generate_series(0, v_ranking.lanes - 1) AS n;
    PERFORM centile_store.advance_lane(x.newest, (x.newest).last_at)
    FROM (SELECT DISTINCT ON (l.lane) l AS newest FROM centile_store.board_lanes l
          WHERE l.board_id = v_period.board_id ORDER BY l.lane, l.batch DESC) x;
    DELETE FROM centile_store.applied a WHERE a.board_id = v_period.board_id;
    INSERT INTO centile_store.applied (board_id, lane, batch)
    SELECT l.board_id, l.lane, max(l.batch) FROM centile_store.board_lanes l WHERE l.board_id = v_period.board_id GROUP BY l.board_id, l.lane;
    -- Keeps the old ranking's time of creation, by which due_periods recognizes a late season.
    UPDATE centile_store.rankings g SET created_at = o.created_at
    FROM centile_store.rankings o WHERE g.id = p_ranking_id AND o.id = v_period.ranking_id;
    UPDATE centile_store.periods SET ranking_id = p_ranking_id, state = 'open' WHERE id = v_period.id;
    -- A damaged pointer may name the ranking of another period.
    UPDATE centile_store.rankings SET released_at = clock_timestamp() WHERE id = v_period.ranking_id AND period_id = v_period.id;
    RETURN coalesce(v_period.ranking_id, 0);
END
$$;

COMMENT ON FUNCTION centile_store.swap_ranking(bigint, integer) IS
'Makes a newly built ranking the current one of its period. Example: SELECT r.ranking_id, centile_store.fill_bounds(r.ranking_id), centile_store.fill_rows(r.ranking_id, 0::smallint) IS NOT NULL AS has_begun FROM centile_store.begin_rebuild(1) AS r (ranking_id);';
