-- centile_store.differences for a period of a template: compares the standings of all its boards with the
-- ledger or, in a closed period, their results with the ledger as of the cut-off.
CREATE OR REPLACE FUNCTION centile_store.boards_differences(p_period centile_store.periods, p_limit integer)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
SET work_mem = '64MB'
SET enable_nestloop = off
SET enable_seqscan = on
SET timezone = 'UTC'
AS $function$
DECLARE
    v_is_closed boolean := p_period.state = 'closed';
    v_boards    integer[] := ARRAY(SELECT t.id FROM centile_store.template_boards t WHERE t.template_id = p_period.board_id);
BEGIN
    -- The user_id of an entry is the board's id * 2^32 + the user's id.
    RETURN QUERY EXECUTE format($query$
        WITH entry AS (
            SELECT e.user_id, %1$s AS data
            FROM (SELECT e.*, row_number() OVER (PARTITION BY e.user_id >> 32 ORDER BY e.rank_key DESC, e.tie_key DESC, e.user_id) AS "position" FROM (%2$s) e) e
        ), result AS (%3$s
        ), different AS (
            SELECT CASE WHEN r.user_id IS NULL THEN 'entry missing' WHEN e.user_id IS NULL THEN 'entry unexpected' ELSE 'entry different' END AS kind,
                   coalesce(e.user_id, r.user_id) AS id, e.data AS expected, r.data AS found
            FROM entry e FULL JOIN result r ON r.user_id = e.user_id WHERE e.data IS DISTINCT FROM r.data
        ), numbered AS (
            SELECT d.*, count(*) OVER (PARTITION BY d.kind) AS total, row_number() OVER (PARTITION BY d.kind ORDER BY d.id) AS n FROM different d
        )
        SELECT n.kind, format('board %%s, %%s', (SELECT b.slug FROM centile_store.board_names b WHERE b.id = n.id >> 32), centile_store.player_label(n.id & 4294967295)),
               n.expected, n.found, n.total
        FROM numbered n WHERE n.n <= $4 ORDER BY n.kind, n.n
        $query$,
        CASE WHEN v_is_closed THEN $$jsonb_build_object('position', e."position", 'score', e.score)$$ ELSE $$jsonb_build_object('rank_key', e.rank_key, 'tie_key', e.tie_key)$$ END,
        centile_store.entries_query(p_period.id, CASE WHEN v_is_closed THEN '$1' END, NULL, NULL, '$3'),
        CASE WHEN v_is_closed THEN format($$
            SELECT (c.board_id::bigint << 32) + r.user_id AS user_id, jsonb_build_object('position', r."position", 'score', r.score) AS data
            FROM centile_store.closed_boards c JOIN centile_store.closed_results r ON r.closed_id = c.id
            WHERE c.period_id = $2 AND c.board_id = ANY ($3) AND c.id >= %1$s AND c.id < %1$s + (1::bigint << 40) AND r.closed_id >= %1$s AND r.closed_id < %1$s + (1::bigint << 40)$$,
            centile_store.first_closed_id(p_period.ends_at))
        ELSE $$
            SELECT (p.board_id::bigint << 32) + p.user_id AS user_id, jsonb_build_object('rank_key', p.rank_keys[n.place], 'tie_key', p.tie_keys[n.place]) AS data
            FROM centile_store.players p CROSS JOIN LATERAL (SELECT array_position(p.period_ids, $2) AS place) n
            WHERE p.board_id = ANY ($3) AND n.place IS NOT NULL$$ END)
    USING (SELECT c.batches FROM centile_store.cut_offs c WHERE c.period_id = p_period.id), p_period.id, v_boards, p_limit;
END
$function$;

COMMENT ON FUNCTION centile_store.boards_differences(centile_store.periods, integer) IS
'Differences between the boards of a template and the ledger in a period. Example: SELECT d.kind, d.subject FROM centile_store.periods p CROSS JOIN LATERAL centile_store.boards_differences(p, 10) d WHERE p.id = 0;';
