-- Archives beyond the number that a board keeps of a kind, or of a length of window. Also archives of
-- windows on boards that keep none, and archives whose dropping was interrupted. The archives of
-- segments are kept as long as that of their whole period.
CREATE OR REPLACE FUNCTION centile_store.expired_archives() RETURNS TABLE (period_id bigint, board text, period text)
LANGUAGE sql STABLE
AS $$
    SELECT p.id, b.slug, centile_store.period_name(p.kind, p.label, p.segment)
    FROM centile_store.periods p
    JOIN (SELECT w.*, row_number() OVER (PARTITION BY w.board_id, w.kind, CASE w.kind WHEN 'rolling' THEN split_part(w.label, '-', 1) END
                                         ORDER BY w.ends_at DESC, w.id DESC) AS place
          FROM centile_store.periods w
          WHERE w.segment = '' AND w.state = 'closed' AND (w.archive_revision > 0 OR w.archive_name IS NOT NULL)) w
        ON w.board_id = p.board_id AND w.kind = p.kind AND w.label = p.label
    JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.state = 'closed' AND p.archive_name IS NOT NULL
      AND (w.place > (b.kept_archives ->> p.kind)::integer OR w.archive_dropped_at IS NOT NULL OR p.archive_dropped_at IS NOT NULL
           OR (p.kind = 'rolling' AND NOT b.kept_archives ? 'rolling')
           -- A window whose closing was cancelled.
           OR p.archive_revision = 0)
    ORDER BY p.ends_at, p.id
$$;

COMMENT ON FUNCTION centile_store.expired_archives() IS
'Archives beyond those that their boards keep. Example: SELECT * FROM centile_store.expired_archives();';
