-- The periods that the sources of a combined board name now, all in the snapshot of the calling
-- statement. A source that cannot be read has a problem. is_final: the period has ended and is closed,
-- or had no scores. A period without scores has neither archive
-- nor ranking, and no version. version: of the last batches, because a combined board reads entries.
CREATE OR REPLACE FUNCTION centile_store.resolve_sources(p_board_id integer)
RETURNS TABLE (place smallint, board_id integer, board text, period text, weight integer, version text, is_final boolean,
               archive text, ranking_id bigint, problem text)
LANGUAGE sql STABLE
AS $$
    SELECT s.place, b.id, b.slug, coalesce(CASE r.kind WHEN 'all_time' THEN r.kind ELSE r.kind || ':' || r.label END, s.period), s.weight,
           CASE WHEN r.ranking_id IS NOT NULL THEN centile_store.version_text(centile_store.lane_batches(b.id, b.lanes))
                WHEN r.archive_revision IS NOT NULL THEN concat_ws('.', centile.epoch(), 'a' || r.period_id, r.archive_revision) END,
           coalesce(r.archive_revision IS NOT NULL OR (r.period_id IS NULL AND r.ends_at <= statement_timestamp()), false),
           (SELECT a.archive_name FROM centile_store.archive_of(r.period_id) a WHERE r.archive_revision IS NOT NULL),
           r.ranking_id,
           CASE WHEN r.kind IS NULL THEN format('board %s has no period %s', b.slug, s.period)
                WHEN r.state = 'upcoming' THEN format('%s of board %s has not begun', s.period, b.slug)
                WHEN r.state = 'preparing' THEN format('%s of board %s is being filled from the ledger', s.period, b.slug)
                WHEN b.mode = 'combined' AND r.period_id IS NULL THEN format('board %s has not been computed yet', b.slug)
                WHEN r.state = 'closed' AND r.archive_revision IS NULL THEN format('the archive of %s:%s of board %s was dropped', r.kind, r.label, b.slug)
           END
    FROM centile_store.combination_sources s
    JOIN centile_store.boards b ON b.id = s.source_board_id
    LEFT JOIN LATERAL centile.resolve_period(b.id, s.period) r ON true
    WHERE s.board_id = p_board_id
    ORDER BY s.place
$$;

COMMENT ON FUNCTION centile_store.resolve_sources(integer) IS
'The periods that the sources of a combined board name now. Example: SELECT r.board, r.period, r.problem FROM centile_store.resolve_sources(4) r;';
