-- A board comes after the boards that it is computed from.
CREATE OR REPLACE FUNCTION centile_store.combined_boards(p_board_id integer DEFAULT NULL)
RETURNS TABLE (board_id integer, board text, time_zone text, refresh text, now timestamptz, defined_at timestamptz, as_of timestamptz,
               is_restored boolean, failures integer, failed_at timestamptz, seconds double precision, has_old_views boolean)
LANGUAGE sql STABLE
AS $$
    SELECT b.id, b.slug, b.time_zone, c.refresh, statement_timestamp(), c.defined_at, c.as_of, c.epoch <> centile.epoch(),
           c.failures, c.failed_at, extract(epoch FROM c.duration)::float8, c.old_views <> '{}' OR c.next_view IS NOT NULL
    FROM centile_store.combinations c
    JOIN centile_store.boards b ON b.id = c.board_id
    WHERE p_board_id IS NULL OR b.id = p_board_id
    -- A board reaches more boards than each of its sources does.
    ORDER BY (SELECT count(*) FROM centile_store.source_boards(b.id)), b.id
$$;

COMMENT ON FUNCTION centile_store.combined_boards(integer) IS
'Combined boards, or one of them, with what decides whether a refresh is due. Example: SELECT board, refresh FROM centile_store.combined_boards();';
