-- p_until: the end of a period, so that later changes do not count in it.
CREATE OR REPLACE FUNCTION centile_store.segments_at(p_board_id integer, p_user_id bigint, p_until timestamptz DEFAULT 'infinity') RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    SELECT l.segment
    FROM (SELECT DISTINCT ON (m.segment) m.segment, m.is_member
          FROM centile_store.segment_members m
          WHERE m.board_id = p_board_id AND m.user_id = p_user_id AND m.segment <> '' AND m.changed_at < p_until
          ORDER BY m.segment, m.batch DESC) l
    WHERE l.is_member
$$;

COMMENT ON FUNCTION centile_store.segments_at(integer, bigint, timestamptz) IS
'The segments of a board to which a player belongs, now or at the end of a period. Example: SELECT centile_store.segments_at(1, 1);';
