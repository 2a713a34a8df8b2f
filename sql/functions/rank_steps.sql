-- rank = 1 + players in better buckets + rows of the bucket above the key. centile_reader may run
-- every statement: they read views and bucket tables. Those of a ranking without bucket rows read
-- the view of all entries.
CREATE OR REPLACE FUNCTION centile_store.rank_steps(p_ranking_id bigint, p_archived_period_id bigint, p_user_id bigint)
RETURNS TABLE (what text, statement text)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_source record;
    v_from   text;
    v_own    centile_store.rank_key;
    v_key    centile_store.rank_key;
    v_bucket record;
    v_better text := format('SELECT coalesce(sum(o.players), 0) FROM centile.bucket_occupancy o WHERE o.ranking_id = %s AND o.place > ', p_ranking_id);
    v_above  text := '(b.rank_key, b.tie_key, b.user_key) > (%s, %s, %s)';
BEGIN
    SELECT p.id, p.kind, p.segment, p.archive_name, b.slug, b.score_order, b.ties INTO v_source
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
    WHERE p.id = coalesce(p_archived_period_id, (SELECT g.period_id FROM centile_store.rankings g WHERE g.id = p_ranking_id));
    RETURN QUERY SELECT 'period', format('SELECT p.kind%s%s FROM centile.periods p WHERE p.period_id = %s',
        CASE v_source.kind WHEN 'all_time' THEN '' ELSE ' || '':'' || p.label' END, CASE v_source.segment WHEN '' THEN '' ELSE ' || ''@'' || p.segment' END, v_source.id);
    IF p_archived_period_id IS NOT NULL THEN
        v_from := format('FROM centile_archive.%I a WHERE a.user_id = %s', v_source.archive_name, p_user_id);
        RETURN QUERY VALUES
            ('archive of the closed period', format('SELECT p.archive FROM centile.periods p WHERE p.period_id = %s', v_source.id)),
            ('version', format('SELECT s.version FROM centile.periods s WHERE s.period_id = %s', v_source.id)),
            ('score', 'SELECT a.score ' || v_from), ('rank', 'SELECT a.rank ' || v_from), ('position', 'SELECT a."position" ' || v_from);
        RETURN;
    END IF;
    SELECT l.rank_key, l.tie_key, -p_user_id INTO v_own FROM centile_store.applied_key(p_ranking_id, p_user_id) l;
    SELECT * INTO v_bucket FROM centile_store.bucket_of(p_ranking_id, v_own.rank_key, v_own.tie_key, v_own.user_key);
    v_from := 'FROM centile_store.%I b WHERE b.ranking_id = ' || p_ranking_id || ' AND ';
    RETURN QUERY VALUES
        ('ranking', format('SELECT p.ranking_id FROM centile.periods p WHERE p.ranking_id = %s', p_ranking_id)),
        ('version', format('SELECT centile.version_of(%s)', p_ranking_id)),
        ('rank key, tie key, user key', format('SELECT concat_ws('', '', b.rank_key, b.tie_key, b.user_key) ' || v_from || '%s',
            centile_store.bucket_table(v_bucket.bucket), CASE v_bucket.bucket WHEN 100 THEN 'b.user_id = ' || p_user_id ELSE 'b.user_key = ' || -p_user_id END)),
        ('score', format('SELECT centile.rank_key(%s, %L)', v_own.rank_key, v_source.score_order)),
        ('ties', format('SELECT b.ties FROM centile.boards b WHERE b.slug = %L', v_source.slug));
    -- Where equal scores share a rank, the greatest key of the score stands for all of them.
    v_key := CASE v_source.ties WHEN 'shared' THEN centile_store.highest_key(v_own.rank_key) ELSE v_own END;
    v_above := 'SELECT count(*) ' || v_from || v_above;
    FOR v_bucket IN
        SELECT k.what, k.key, b.bucket, b.place,
               v_better || b.place AS better, format(v_above, centile_store.bucket_table(b.bucket), (k.key).rank_key, (k.key).tie_key, (k.key).user_key) AS above
        FROM (VALUES (1, 'rank', v_key), (2, 'position', v_own)) AS k (n, what, key)
        CROSS JOIN LATERAL centile_store.bucket_of(p_ranking_id, (k.key).rank_key, (k.key).tie_key, (k.key).user_key) b
        ORDER BY k.n
    LOOP
        IF v_bucket.what = 'rank' THEN
            v_from := format('FROM centile.bucket_occupancy o WHERE o.ranking_id = %s AND (o.low_rank_key, o.low_tie_key, o.low_user_key) <= (%s, %s, %s) ORDER BY o.place DESC LIMIT 1',
                p_ranking_id, v_key.rank_key, v_key.tie_key, v_key.user_key);
            RETURN QUERY SELECT s.* FROM (VALUES ('bucket', 'SELECT o.bucket ' || v_from), ('place of the bucket', 'SELECT o.place ' || v_from)) AS s WHERE v_bucket.bucket <> 100;
            RETURN QUERY VALUES ('players in better buckets', v_bucket.better), ('rows above in the bucket', v_bucket.above);
        END IF;
        RETURN QUERY SELECT v_bucket.what, format('SELECT 1 + (%s) + (%s)', v_bucket.better, v_bucket.above);
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.rank_steps(bigint, bigint, bigint) IS
'The statements that make up a player''s rank, in a ranking or the archive of a period. Example: SELECT what FROM centile_store.rank_steps(1, NULL, 1);';
