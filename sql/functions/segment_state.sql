-- member_*: rows of centile_store.segment_members, oldest first: all of them for an import, and
-- only the present segments for live events. The rows of players who are new to the board do not
-- exist yet, and have member_are_new. member_times is NULL for rows that apply to all time.
-- periods: the id of the whole period of each opened segment. A segment that accepts no more events
-- has no ranking.
CREATE OR REPLACE FUNCTION centile_store.segment_state(
    p_board centile_store.boards, p_user_ids bigint[], p_event_users integer[], p_times timestamptz[], p_at timestamptz, p_period_ids bigint[],
    OUT member_users integer[], OUT member_segments text[], OUT member_times timestamptz[], OUT member_are_in boolean[], OUT member_are_new boolean[],
    OUT periods bigint[], OUT segments text[], OUT rankings bigint[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(x.place ORDER BY x.place, x.segment, x.batch), array_agg(x.segment ORDER BY x.place, x.segment, x.batch),
           array_agg(nullif(x.changed_at, '-infinity') ORDER BY x.place, x.segment, x.batch),
           array_agg(x.is_member ORDER BY x.place, x.segment, x.batch), array_agg(x.batch IS NULL ORDER BY x.place, x.segment, x.batch)
    INTO member_users, member_segments, member_times, member_are_in, member_are_new
    FROM unnest(p_user_ids) WITH ORDINALITY AS u (id, place)
    CROSS JOIN LATERAL (
        SELECT u.place::integer AS place, m.segment, m.batch, m.changed_at, m.is_member
        FROM centile_store.segment_members m
        WHERE m.board_id = p_board.id AND m.user_id = u.id AND m.segment <> ''
          AND (p_times IS NOT NULL OR (m.is_member AND NOT EXISTS (
              SELECT FROM centile_store.segment_members l
              WHERE l.board_id = p_board.id AND l.user_id = u.id AND l.segment = m.segment AND l.batch > m.batch)))
        UNION ALL
        -- Like centile_store.wanted_segments, which would be planned again for each player.
        SELECT u.place::integer, s.segment, NULL, '-infinity', true
        FROM (SELECT '' AS segment
              UNION ALL
              SELECT a.name || ':' || (w.attributes ->> a.name)
              FROM centile_store.users w CROSS JOIN unnest(p_board.segments) AS a (name) WHERE w.id = u.id AND w.attributes ? a.name) s
        WHERE NOT EXISTS (SELECT FROM centile_store.segment_members m WHERE m.board_id = p_board.id AND m.user_id = u.id AND m.segment = '')) x
    WHERE u.id IS NOT NULL;

    SELECT array_agg(w.id), array_agg(s.segment), array_agg(CASE WHEN s.cut_off_at IS NULL THEN s.ranking_id END)
    INTO periods, segments, rankings
    FROM (SELECT DISTINCT w.id, w.kind, w.label, m.segment
          FROM centile_store.periods w
          JOIN unnest(p_event_users, p_times) AS e (place, at)
              ON w.starts_at <= coalesce(e.at, p_at) AND coalesce(e.at, p_at) < w.ends_at
          JOIN unnest(member_users, member_segments) AS m (place, segment) ON m.place = e.place AND m.segment <> ''
          WHERE p_times IS NOT NULL AND w.id = ANY (p_period_ids)
          UNION ALL
          SELECT w.id, w.kind, w.label, m.segment
          FROM centile_store.periods w
          CROSS JOIN (SELECT DISTINCT m.segment FROM unnest(member_segments) AS m (segment) WHERE m.segment <> '') m
          WHERE p_times IS NULL AND w.id = ANY (p_period_ids)) w
    CROSS JOIN LATERAL (SELECT * FROM centile_store.periods s
                        WHERE s.board_id = p_board.id AND s.kind = w.kind AND s.label = w.label AND s.segment = w.segment LIMIT 1) s;
END
$$;

COMMENT ON FUNCTION centile_store.segment_state(centile_store.boards, bigint[], integer[], timestamptz[], timestamptz, bigint[]) IS
'Segments of the players of a batch, and the rankings of these segments in its periods. Example: SELECT s.member_segments FROM centile_store.boards b CROSS JOIN LATERAL centile_store.segment_state(b, ''{1}'', NULL, NULL, now(), ''{1}'') s WHERE b.slug = ''main'';';
