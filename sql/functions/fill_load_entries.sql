-- Writes the entries of the rankings of one kind from the events of a load, all in one pass; of a season, named, those of its one ranking.
-- Returns the rankings that have any players.
CREATE FUNCTION centile_store.fill_load_entries(p_board_id integer, p_kind text, p_season text DEFAULT NULL) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET work_mem = '256MB'
AS $$
DECLARE
    v_board    centile_store.boards;
    v_begins   timestamptz[];
    v_ends     timestamptz[];
    v_rankings bigint[];
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    SELECT array_agg(p.starts_at ORDER BY p.starts_at), array_agg(p.ends_at ORDER BY p.starts_at), array_agg(p.ranking_id ORDER BY p.starts_at)
    INTO v_begins, v_ends, v_rankings
    FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = p_kind AND p.ranking_id IS NOT NULL AND (p_kind <> 'season' OR p.label = p_season);
    -- The periods of a kind follow one another: that which begins last holds the time, unless it has ended.
    EXECUTE format($query$
        INSERT INTO centile_store.leaderboard (user_id, score, rank_key, tie_key, reached_at, only_zeros, ranking_id)
        WITH s AS (
            SELECT ($3)[x.n] AS ranking_id, x.id, x.user_id, x.points, x.tiebreak, x.occurred_at
            FROM (SELECT e.*, width_bucket(e.occurred_at, $1) AS n FROM pg_temp.load_event e) x
            WHERE x.occurred_at < ($2)[x.n]
        )
        SELECT o.user_id, o.score, o.rank_key, o.tie_key, o.reached_at, o.only_zeros, o.ranking_id
        FROM (%s) o
        ORDER BY o.ranking_id, o.user_id $query$, centile_store.entries_of(v_board, 'ranking_id'))
    USING v_begins, v_ends, v_rankings;
    RETURN ARRAY(
        SELECT r.id FROM unnest(v_rankings) AS r (id)
        WHERE EXISTS (SELECT FROM centile_store.leaderboard l WHERE l.ranking_id = r.id));
END
$$;

COMMENT ON FUNCTION centile_store.fill_load_entries(integer, text, text) IS
'Writes the entries of the rankings of one kind from the events of a load. Example: SELECT centile_store.make_load_tables(), centile_store.fill_load_entries(1, ''day'');';
