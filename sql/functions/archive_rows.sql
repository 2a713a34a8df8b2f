-- Rows of an archive from a position, with the names of now. rank_key, tie_key and internal_id make the cursor of the page
-- after; the tie key is that of the time alone.
-- The name comes from the period's row, never from a caller.
CREATE OR REPLACE FUNCTION centile_store.archive_rows(p_archive text, p_order text, p_from bigint, p_limit integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT a."position", a.rank, u.external_id, u.name, u.avatar, a.score, a.reached_at,
                u.id, centile.rank_key(a.score, $1), centile.tie_key(a.reached_at)
         FROM (SELECT * FROM centile_archive.%I a WHERE a."position" >= $2 ORDER BY a."position" LIMIT $3) a
         JOIN centile_store.users u ON u.id = a.user_id
         ORDER BY a."position"', p_archive)
    USING p_order, p_from, p_limit;
END
$$;

COMMENT ON FUNCTION centile_store.archive_rows(text, text, bigint, integer) IS
'Rows of an archive from a position. Example: SELECT centile_store.cut_off_period(2) IS NOT NULL AS is_cut_off, centile_store.build_archive(2), (SELECT count(*) FROM centile_store.archive_rows(centile_store.archive_name(2), ''desc'', 1, 10)) AS players;';
