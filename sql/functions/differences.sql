-- Compares all derived data with the ledger, in the snapshot of the calling statement, so scores
-- may arrive meanwhile. Each kind of data is compared separately, so damage of one kind is not
-- reported as another. Returns up to p_limit rows of each kind; total is the number of all rows of
-- the kind.
--
-- Of an open period: its ranking, entries, bucket rows, layout, bucket counts, the rows of each
-- lane and the segments of its players. Without p_whole, only players with ledger rows since the
-- last verification are compared with the ledger, and the others' bucket rows with their entries.
--
-- Of a closed period: the archive as of its cut-off, and the frozen top, while the archive is kept.
-- Without p_whole, only if this revision has not been verified. Of a combined board: its view,
-- number of players and frozen top. Of a template: always all its boards.
CREATE OR REPLACE FUNCTION centile_store.differences(p_period_id bigint, p_limit integer DEFAULT 10, p_whole boolean DEFAULT true)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
SET timezone = 'UTC'
AS $$
DECLARE
    v_period centile_store.periods;
    v_new    record;
BEGIN
    SELECT * INTO v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    IF v_period.ranking_id IS NOT NULL THEN
        SELECT * INTO v_new FROM centile_store.unverified(CASE WHEN NOT p_whole THEN v_period.ranking_id END);
        RETURN QUERY
        SELECT 'ranking', format('ranking %s', g.id), to_jsonb(format('of period %s, in use', p_period_id)),
               to_jsonb(format('of period %s%s', g.period_id, CASE WHEN g.released_at IS NOT NULL THEN ', released' ELSE '' END)), 1::bigint
        FROM centile_store.rankings g WHERE g.id = v_period.ranking_id AND (g.period_id <> p_period_id OR g.released_at IS NOT NULL);
        RETURN QUERY SELECT * FROM centile_store.ranking_differences(v_period.ranking_id, p_limit, v_new.user_ids);
        RETURN QUERY
        SELECT d.kind, d.subject, d.expected, d.found, d.total
        FROM (SELECT l.*, count(*) OVER (PARTITION BY l.kind) AS total, row_number() OVER (PARTITION BY l.kind ORDER BY l.place, l.subject) AS n
              FROM centile_store.layout_differences(v_period.ranking_id, v_new.batches, v_new.times) l) d
        WHERE d.n <= p_limit
        ORDER BY d.kind, d.n;
        RETURN QUERY SELECT * FROM centile_store.segment_differences(p_period_id, p_limit) WHERE v_period.segment = '';
        IF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
            RETURN QUERY SELECT * FROM centile_store.boards_differences(v_period, p_limit);
            RETURN QUERY
            SELECT d.* FROM centile_store.rankings g CROSS JOIN LATERAL centile_store.ranking_differences(g.id, p_limit) d
            WHERE g.period_id = p_period_id AND g.players_of <> g.board_id AND g.has_bucket_rows AND g.released_at IS NULL AND d.kind NOT LIKE 'entry%';
        END IF;
    ELSIF v_period.frozen_top IS NULL THEN
        RETURN;
    ELSIF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
        RETURN QUERY SELECT * FROM centile_store.boards_differences(v_period, p_limit);
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                      WHERE c.relnamespace = 'centile_archive'::regnamespace AND c.relname = v_period.archive_name AND c.relkind IN ('m', 'r') AND c.relispopulated) THEN
        RETURN QUERY SELECT 'archive missing', 'centile_archive.' || v_period.archive_name, to_jsonb('an archive'::text), NULL::jsonb, 1::bigint;
    ELSIF NOT p_whole AND v_period.archive_revision = (SELECT c.verified_revision FROM centile_store.cut_offs c WHERE c.period_id = p_period_id) THEN
        RETURN;
    ELSIF v_period.kind = 'all_time' THEN
        -- Of a combined board. Its sources may have changed since, so the ranking is only compared
        -- with its own parts.
        RETURN QUERY EXECUTE format(
            'SELECT ''archive players'', ''players of the combined ranking'', to_jsonb(a.players), to_jsonb($1), 1::bigint
             FROM (SELECT count(*) AS players FROM centile_archive.%I) a WHERE a.players <> $1', v_period.archive_name)
        USING v_period.archive_players;
        RETURN QUERY EXECUTE format(
            'SELECT ''frozen top'', format(''position %%s'', t.place), to_jsonb(a), t.row, count(*) OVER ()
             FROM jsonb_array_elements(convert_from($1, ''UTF8'')::jsonb -> ''rows'') WITH ORDINALITY AS t (row, place)
             LEFT JOIN centile_archive.%I a ON a."position" = t.place
             WHERE (t.row -> ''internal_id'', t.row -> ''rank'', t.row -> ''score'') IS DISTINCT FROM (to_jsonb(a.user_id), to_jsonb(a.rank), to_jsonb(a.score))
             ORDER BY t.place LIMIT $2', v_period.archive_name)
        USING v_period.frozen_top, p_limit;
    ELSE
        RETURN QUERY SELECT * FROM centile_store.closed_differences(p_period_id, p_limit);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.differences(bigint, integer, boolean) IS
'Differences between a period and the ledger; no rows if there are none. Example: SELECT * FROM centile_store.differences(1);';
