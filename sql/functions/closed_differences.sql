-- See centile_store.differences. A correction that waits for a refresh came after the cut-off and
-- is no difference, nor is the old id of a player whose erasure is in progress.
CREATE OR REPLACE FUNCTION centile_store.closed_differences(p_period_id bigint, p_limit integer)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
SET work_mem = '64MB'
-- The planner expects few players in an archive that has not been analyzed.
SET enable_nestloop = off
SET timezone = 'UTC'
AS $$
DECLARE
    v_period   centile_store.periods;
    v_top      jsonb;
    v_tiebreak text;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    v_tiebreak := (SELECT CASE b.ties WHEN 'second' THEN 'e.tiebreak IS DISTINCT FROM a.tiebreak' ELSE 'false' END FROM centile_store.boards b WHERE b.id = v_period.board_id);
    BEGIN
        v_top := convert_from(v_period.frozen_top, 'UTF8')::jsonb;
    EXCEPTION WHEN data_exception THEN
        -- An unreadable top differs at every place.
        v_top := '{}';
    END;
    RETURN QUERY EXECUTE format($query$
        WITH ledger AS MATERIALIZED (
            %s
        ), row AS (
            SELECT CASE WHEN a.user_id IS NULL THEN 'archive row missing' WHEN e.user_id IS NULL THEN 'archive row unexpected' ELSE 'archive row different' END AS kind,
                   coalesce(e.user_id, a.user_id) AS user_id,
                   CASE WHEN e.user_id IS NOT NULL THEN to_jsonb(e) - 'user_id' END AS expected,
                   CASE WHEN a.user_id IS NOT NULL THEN to_jsonb(a) - 'user_id' END AS found
            FROM ledger e
            FULL JOIN centile_archive.%I a ON a.user_id = e.user_id
            WHERE (e."position", e.rank, e.score, e.reached_at) IS DISTINCT FROM (a."position", a.rank, a.score, a.reached_at) OR %s
        -- As many rows as were frozen: the board's setting may have changed.
        ), top AS (
            SELECT coalesce(e."position", t.place) AS place,
                   CASE WHEN e.user_id IS NOT NULL THEN jsonb_build_object('player', e.user_id, 'user_id', CASE WHEN x.user_id IS NULL THEN u.external_id END, 'rank', e.rank, 'score', e.score, 'reached_at', e.reached_at, 'tiebreak', to_jsonb(e) -> 'tiebreak') END AS expected,
                   CASE WHEN t.row IS NOT NULL THEN jsonb_build_object('player', t.row -> 'internal_id', 'user_id', CASE WHEN x.user_id IS NULL THEN t.row -> 'user_id' END, 'rank', t.row -> 'rank', 'score', t.row -> 'score', 'reached_at', t.row -> 'reached_at', 'tiebreak', t.row -> 'tiebreak') END AS found
            FROM (SELECT * FROM ledger e WHERE e."position" <= greatest(jsonb_array_length($2 -> 'rows'), 1)) e
            FULL JOIN jsonb_array_elements($2 -> 'rows') WITH ORDINALITY AS t (row, place) ON t.place = e."position"
            LEFT JOIN centile_store.users u ON u.id = e.user_id
            LEFT JOIN centile_store.erasures x ON x.user_id = e.user_id AND x.done_at IS NULL
        )
        SELECT d.kind, centile_store.player_label(d.user_id), d.expected, d.found, d.total
        FROM (SELECT d.*, count(*) OVER (PARTITION BY d.kind) AS total, row_number() OVER (PARTITION BY d.kind ORDER BY d.user_id) AS n FROM row d) d
        WHERE d.n <= $1
        UNION ALL
        SELECT 'frozen top', format('position %%s', d.place), d.expected, d.found, d.total
        FROM (SELECT t.*, count(*) OVER () AS total, row_number() OVER (ORDER BY t.place) AS n FROM top t WHERE t.expected IS DISTINCT FROM t.found) d
        WHERE d.n <= $1
        UNION ALL
        SELECT 'archive players', p.subject, to_jsonb(l.players), p.found, 1
        FROM (SELECT count(*) AS players FROM ledger) l
        CROSS JOIN (VALUES ('players of the period', to_jsonb($3)), ('players of the frozen top', $2 -> 'players')) AS p (subject, found)
        WHERE to_jsonb(l.players) IS DISTINCT FROM p.found
        $query$, centile_store.archive_query(p_period_id), v_period.archive_name, v_tiebreak)
    USING p_limit, v_top, v_period.archive_players;
END
$$;

COMMENT ON FUNCTION centile_store.closed_differences(bigint, integer) IS
'Differences between the archive of a closed period and the ledger as of its cut-off. Example: SELECT d.* FROM centile.periods p CROSS JOIN LATERAL centile_store.closed_differences(p.period_id, 10) d WHERE p.archive IS NOT NULL;';
