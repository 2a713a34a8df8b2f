-- Names are current. The tie key contains only the time or, with ties `second`, the second number.
CREATE OR REPLACE FUNCTION centile_store.archive_rows(p_period_id bigint, p_from bigint, p_limit integer) RETURNS SETOF centile_store.ranking_row
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF FOUND THEN
        RETURN QUERY EXECUTE format(
            'SELECT a."position", a.rank, u.external_id, u.name, u.avatar, a.score, a.reached_at,
                    u.id, centile.rank_key(a.score, $1), %s, %s
             FROM (SELECT * FROM %s a WHERE a."position" >= $2 ORDER BY a."position" LIMIT $3) a
             JOIN centile_store.users u ON u.id = a.user_id
             ORDER BY a."position"', v_archive.tie_key, v_archive.tiebreak, v_archive.source)
        USING v_archive.score_order, p_from, p_limit;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.archive_rows(bigint, bigint, integer) IS
'Rows of a period''s archive from a position. Example: SELECT position, rank, user_id, score FROM centile_store.archive_rows(4, 1, 10);';
