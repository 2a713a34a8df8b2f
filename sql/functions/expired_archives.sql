-- Archives beyond the number that a board keeps of a kind, or of a length of window. Also archives of
-- windows on boards that keep none, and archives whose dropping was interrupted.
CREATE OR REPLACE FUNCTION centile_store.expired_archives() RETURNS TABLE (period_id bigint, board text, period text)
LANGUAGE sql STABLE
AS $$
    SELECT p.id, b.slug, p.kind || ':' || p.label
    FROM (SELECT p.*, row_number() OVER (PARTITION BY p.board_id, p.kind, CASE p.kind WHEN 'rolling' THEN split_part(p.label, '-', 1) END
                                         ORDER BY p.ends_at DESC, p.id DESC) AS place
          FROM centile_store.periods p WHERE p.state = 'closed' AND (p.archive_revision > 0 OR p.archive_name IS NOT NULL)) p
    JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.archive_name IS NOT NULL
      AND (p.place > (b.kept_archives ->> p.kind)::integer OR p.archive_dropped_at IS NOT NULL
           OR (p.kind = 'rolling' AND NOT b.kept_archives ? 'rolling')
           -- A window whose closing was cancelled.
           OR p.archive_revision = 0)
    ORDER BY p.ends_at, p.id
$$;

COMMENT ON FUNCTION centile_store.expired_archives() IS
'Archives beyond those that their boards keep. Example: SELECT * FROM centile_store.expired_archives();';
