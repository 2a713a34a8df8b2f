-- rank = 1 + players in better buckets + rows of the bucket above the key.
CREATE OR REPLACE FUNCTION centile_store.rank_steps(p_ranking_id bigint, p_archived_period_id bigint, p_user_id bigint)
RETURNS TABLE (what text, statement text)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_of     text := format('FROM centile_store.applied_key(%s, %s) l', p_ranking_id, p_user_id);
    v_own    centile_store.rank_key;
    v_key    centile_store.rank_key;
    v_bucket record;
    v_numbers text;
BEGIN
    RETURN QUERY
    SELECT 'period', format('SELECT centile_store.period_name(p.kind, p.label, p.segment) FROM centile_store.periods p WHERE p.id = %s',
        coalesce(p_archived_period_id, (SELECT g.period_id FROM centile_store.rankings g WHERE g.id = p_ranking_id)));
    IF p_archived_period_id IS NOT NULL THEN
        v_of := format('FROM centile_archive.%I a WHERE a.user_id = %s',
            (SELECT a.archive_name FROM centile_store.archive_of(p_archived_period_id) a), p_user_id);
        RETURN QUERY VALUES
            ('archive of the closed period',
                format('SELECT p.archive_name FROM centile_store.periods p WHERE p.id = %s', p_archived_period_id)),
            ('version',
                format('SELECT format(''%%s.a%%s.%%s'', centile.epoch(), p.id, p.archive_revision) FROM centile_store.periods p WHERE p.id = %s',
                    p_archived_period_id)),
            ('score', 'SELECT a.score ' || v_of), ('rank', 'SELECT a.rank ' || v_of), ('position', 'SELECT a."position" ' || v_of);
        RETURN;
    END IF;
    SELECT l.rank_key, l.tie_key, -p_user_id INTO v_own FROM centile_store.applied_key(p_ranking_id, p_user_id) l;
    -- Where equal scores share a rank, the greatest key of the score stands for all of them.
    v_key := (SELECT CASE b.ties WHEN 'shared' THEN centile_store.highest_key(v_own.rank_key) ELSE v_own END
              FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id WHERE g.id = p_ranking_id);
    v_numbers := format('%s, %s, %s', v_key.rank_key, v_key.tie_key, v_key.user_key);
    SELECT b.place, b.bucket INTO v_bucket FROM centile_store.bucket_of(p_ranking_id, v_key.rank_key, v_key.tie_key, v_key.user_key) b;
    RETURN QUERY VALUES
        ('ranking', format('SELECT p.ranking_id FROM centile_store.periods p WHERE p.ranking_id = %s', p_ranking_id)),
        ('version', format('SELECT centile.version_of(%s)', p_ranking_id)),
        ('score', format('SELECT centile.rank_key(l.rank_key, b.score_order) FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id CROSS JOIN LATERAL centile_store.applied_key(g.id, %s) l WHERE g.id = %s', p_user_id, p_ranking_id)),
        ('rank key, tie key, user key', 'SELECT concat_ws('', '', l.rank_key, l.tie_key, ' || -p_user_id || ') ' || v_of),
        ('ties', format('SELECT b.ties FROM centile_store.boards b JOIN centile_store.rankings g ON g.board_id = b.id WHERE g.id = %s', p_ranking_id)),
        ('bucket', format('SELECT b.bucket FROM centile_store.bucket_of(%s, %s) b', p_ranking_id, v_numbers)),
        ('place of the bucket', format('SELECT b.place FROM centile_store.bucket_of(%s, %s) b', p_ranking_id, v_numbers)),
        ('players in better buckets',
            format('SELECT coalesce(sum(c.players), 0) FROM unnest((centile_store.bucket_totals(%s))[%s:]) AS c (players)', p_ranking_id, v_bucket.place + 1)),
        ('rows above in the bucket',
            format('SELECT (centile_store.count_in_bucket(%s::smallint, %s, %s, false, false))[2]', v_bucket.bucket, p_ranking_id, v_numbers)),
        ('rank', format('SELECT 1 + centile_store.count_above(%s, %s)', p_ranking_id, v_key)),
        ('position', format('SELECT 1 + centile_store.count_above(%s, %s)', p_ranking_id, v_own));
END
$$;

COMMENT ON FUNCTION centile_store.rank_steps(bigint, bigint, bigint) IS
'The statements that make up a player''s rank, in a ranking or the archive of a period. Example: SELECT what FROM centile_store.rank_steps(1, NULL, 1);';
