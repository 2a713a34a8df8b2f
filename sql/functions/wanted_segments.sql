CREATE OR REPLACE FUNCTION centile_store.wanted_segments(p_board centile_store.boards, p_user_id bigint) RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    SELECT a.name || ':' || (u.attributes ->> a.name)
    FROM centile_store.users u CROSS JOIN unnest(p_board.segments) AS a (name)
    WHERE u.id = p_user_id AND u.attributes ? a.name
$$;

COMMENT ON FUNCTION centile_store.wanted_segments(centile_store.boards, bigint) IS
'The segments of a board that follow from a user''s attributes. Example: SELECT centile_store.wanted_segments(b, 1) FROM centile_store.boards b WHERE b.slug = ''main'';';
