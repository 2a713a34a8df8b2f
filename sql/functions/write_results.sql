-- Replaces the results of a template's boards in a period, from the ledger as of p_batches. Compares them
-- with the live standings as long as there are any, except of players whom an act has changed since.
CREATE OR REPLACE FUNCTION centile_store.write_results(p_period centile_store.periods, p_boards integer[], p_batches bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET work_mem = '128MB'
SET enable_nestloop = off
SET timezone = 'UTC'
AS $$
DECLARE
    v_board centile_store.boards;
    v_first bigint := centile_store.first_closed_id(p_period.ends_at);
    v_ids   jsonb;
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_period.board_id;
    -- A board keeps its id, which messages name.
    v_ids := (SELECT jsonb_object_agg(c.board_id, c.id) FROM centile_store.closed_boards c
              WHERE c.id >= v_first AND c.id < v_first + (1::bigint << 40) AND c.board_id = ANY (p_boards) AND c.period_id = p_period.id);
    WITH old AS (
        DELETE FROM centile_store.closed_boards c
        WHERE c.id >= v_first AND c.id < v_first + (1::bigint << 40) AND c.board_id = ANY (p_boards) AND c.period_id = p_period.id RETURNING c.id)
    DELETE FROM centile_store.closed_results r USING old WHERE r.closed_id = old.id AND r.closed_id >= v_first AND r.closed_id < v_first + (1::bigint << 40);
    EXECUTE format($query$
        WITH entry AS MATERIALIZED (
            SELECT (e.user_id >> 32)::integer AS board_id, e.user_id & 4294967295 AS user_id, e.score, e.rank_key, e.tie_key, e.reached_at FROM (%1$s) e
        ), board AS MATERIALIZED (
            SELECT coalesce(($7 ->> b.id::text)::bigint, $4 + nextval('centile_store.closed_boards_id_seq')) AS id, b.id AS board_id FROM unnest($3) AS b (id)
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
            WHERE (e.rank_key, e.tie_key) IS DISTINCT FROM (l.rank_key, l.tie_key) AND a.user_id IS NULL AND $5
            GROUP BY board_id
        ), total AS (
            SELECT r.closed_id, count(*) AS players, max(r.reached_at) AS last_at FROM result r GROUP BY r.closed_id)
        INSERT INTO centile_store.closed_boards (id, board_id, period_id, archive_revision, players, differences, last_at)
        SELECT b.id, b.board_id, $2, $6, coalesce(t.players, 0), coalesce(d.players, 0), t.last_at
        FROM board b LEFT JOIN total t ON t.closed_id = b.id LEFT JOIN difference d ON d.board_id = b.board_id
        $query$,
        centile_store.entries_query(p_period.id, '$1', NULL, NULL, '$3'),
        CASE v_board.ties WHEN 'shared' THEN 'rank() OVER equals' ELSE 'row_number() OVER places' END,
        CASE v_board.ties WHEN 'second' THEN format('centile.rank_key(e.tie_key, %L)', v_board.tiebreak_order) ELSE 'NULL::bigint' END)
    USING p_batches, p_period.id, p_boards, v_first, p_period.state <> 'closed', p_period.archive_revision + 1, v_ids;
END
$$;

COMMENT ON FUNCTION centile_store.write_results(centile_store.periods, integer[], bigint[]) IS
'Writes the results of boards of a template in a period. Example: SELECT centile_store.write_results(p, ''{}'', ''{}'') FROM centile_store.periods p WHERE p.id = 0;';
