-- A step of closing a period of a template: the results of its next p_limit boards, from the ledger as
-- of the cut-off. Compares them with the live standings, except of players whom an act has changed
-- since. Returns the number of boards; 0 after the last. Repeats what an earlier cut-off left behind.
CREATE OR REPLACE FUNCTION centile_store.close_boards(p_period_id bigint, p_limit integer DEFAULT 2000) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET work_mem = '128MB'
SET enable_nestloop = off
SET timezone = 'UTC'
AS $$
DECLARE
    v_period  centile_store.periods;
    v_board   centile_store.boards;
    v_cut_off centile_store.cut_offs;
    v_boards  integer[];
    v_first   bigint;
BEGIN
    SELECT * INTO STRICT v_cut_off FROM centile_store.cut_offs c WHERE c.period_id = p_period_id FOR UPDATE;
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' OR v_period.cut_off_at IS NULL THEN
        RAISE EXCEPTION 'the period is closed or not cut off' USING ERRCODE = 'CB409';
    END IF;
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = v_period.board_id;
    v_first := centile_store.first_closed_id(v_period.ends_at);
    v_boards := ARRAY(SELECT g.players_of FROM centile_store.rankings g
                      WHERE g.players_of > v_cut_off.last_board AND g.period_id = p_period_id AND g.players_of <> g.board_id
                      ORDER BY g.players_of LIMIT p_limit);
    WITH old AS (
        DELETE FROM centile_store.closed_boards c
        WHERE c.id >= v_first AND c.id < v_first + (1::bigint << 40) AND c.board_id = ANY (v_boards) AND c.period_id = p_period_id RETURNING c.id)
    DELETE FROM centile_store.closed_results r USING old WHERE r.closed_id = old.id AND r.closed_id >= v_first AND r.closed_id < v_first + (1::bigint << 40);
    EXECUTE format($query$
        WITH entry AS MATERIALIZED (
            SELECT (e.user_id >> 32)::integer AS board_id, e.user_id & 4294967295 AS user_id, e.score, e.rank_key, e.tie_key, e.reached_at FROM (%1$s) e
        ), board AS MATERIALIZED (
            SELECT $4 + nextval('centile_store.closed_boards_id_seq') AS id, b.id AS board_id FROM unnest($3) AS b (id)
        ), result AS MATERIALIZED (
            SELECT b.id AS closed_id, row_number() OVER places AS "position", %2$s AS rank, e.user_id, e.score, e.reached_at, %3$s AS tiebreak
            FROM entry e JOIN board b USING (board_id)
            WINDOW places AS (PARTITION BY b.id ORDER BY e.rank_key DESC, e.tie_key DESC, e.user_id), equals AS (PARTITION BY b.id ORDER BY e.rank_key DESC)
        ), stored AS (
            INSERT INTO centile_store.closed_results (closed_id, "position", rank, user_id, score, reached_at, tiebreak)
            SELECT r.closed_id, r."position", r.rank, r.user_id, r.score, r.reached_at, r.tiebreak FROM result r ORDER BY r.closed_id, r."position"
        ), later AS MATERIALIZED (
            SELECT DISTINCT t.board_id, t.user_id FROM centile_store.score_transactions t
            WHERE t.board_id = ANY ($3) AND t.kind <> 'score' AND t.batch > ($1)[t.lane + 1]
        ), live AS (
            SELECT p.board_id, p.user_id, p.rank_keys[n.place] AS rank_key, p.tie_keys[n.place] AS tie_key
            FROM centile_store.players p CROSS JOIN LATERAL (SELECT array_position(p.period_ids, $2) AS place) n
            WHERE p.board_id = ANY ($3) AND n.place IS NOT NULL
        ), difference AS (
            SELECT board_id, count(*) AS players FROM entry e FULL JOIN live l USING (board_id, user_id) LEFT JOIN later a USING (board_id, user_id)
            WHERE (e.rank_key, e.tie_key) IS DISTINCT FROM (l.rank_key, l.tie_key) AND a.user_id IS NULL
            GROUP BY board_id
        ), total AS (
            SELECT r.closed_id, count(*) AS players, max(r.reached_at) AS last_at FROM result r GROUP BY r.closed_id)
        INSERT INTO centile_store.closed_boards (id, board_id, period_id, players, differences, last_at)
        SELECT b.id, b.board_id, $2, coalesce(t.players, 0), coalesce(d.players, 0), t.last_at
        FROM board b LEFT JOIN total t ON t.closed_id = b.id LEFT JOIN difference d ON d.board_id = b.board_id
        $query$,
        centile_store.entries_query(p_period_id, '$1', NULL, NULL, '$3'),
        CASE v_board.ties WHEN 'shared' THEN 'rank() OVER equals' ELSE 'row_number() OVER places' END,
        CASE v_board.ties WHEN 'second' THEN format('centile.rank_key(e.tie_key, %L)', v_board.tiebreak_order) ELSE 'NULL::bigint' END)
    USING v_cut_off.batches, p_period_id, v_boards, v_first;
    UPDATE centile_store.cut_offs c SET last_board = v_boards[cardinality(v_boards)] WHERE c.period_id = p_period_id AND v_boards <> '{}';
    RETURN cardinality(v_boards);
END
$$;

COMMENT ON FUNCTION centile_store.close_boards(bigint, integer) IS
'Writes the results of some boards of a template in a period that is cut off, and returns their number. Example: SELECT centile_store.close_boards(p.period_id) FROM centile.periods p WHERE p.board = ''quest-*'' AND p.state = ''closing'';';
