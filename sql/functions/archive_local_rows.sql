-- As centile_store.local_rows, of a closed period. The key p_after may come from the live ranking.
CREATE OR REPLACE FUNCTION centile_store.archive_local_rows(
    p_period_id bigint, p_user_ids bigint[], p_from bigint, p_after centile_store.rank_key, p_around bigint, p_limit integer,
    OUT players bigint, OUT rows json)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
BEGIN
    players := 0;
    rows := '[]';
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF FOUND THEN
        EXECUTE format(
            'WITH local AS MATERIALIZED (
                 SELECT a.*, row_number() OVER (ORDER BY a."position") AS place, rank() OVER (ORDER BY a.rank) AS local_rank
                 FROM %s a WHERE a.user_id = ANY ($1)
             ), page AS MATERIALIZED (
                 SELECT CASE WHEN $4 IS NOT NULL THEN (SELECT l.place FROM local l WHERE l.user_id = $4) - $5
                             WHEN $3 IS NOT NULL THEN 1 + (SELECT count(*) FROM local l WHERE l."position" <= $3)
                             ELSE $2 END AS first,
                        CASE WHEN $4 IS NOT NULL THEN 2 * $5 + 1 ELSE $5 END AS size
             )
             SELECT (SELECT count(*) FROM local),
                    (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.place), ''[]'')
                     FROM (SELECT a.place, a.local_rank, a.user_id AS internal_id, a."position", a.rank, u.external_id AS user_id,
                                  u.name AS user_name, u.avatar, a.score, a.reached_at,
                                  centile.rank_key(a.score, $6) AS rank_key, %s AS tie_key, %s AS tiebreak
                           FROM (SELECT a.* FROM local a, page p WHERE a.place >= p.first AND a.place - p.first < p.size) a
                           JOIN centile_store.users u ON u.id = a.user_id) r)', v_archive.source, v_archive.tie_key, v_archive.tiebreak)
        INTO players, rows
        USING p_user_ids, p_from,
              CASE WHEN p_after IS NOT NULL THEN centile_store.archive_place(p_period_id, (p_after).rank_key, (p_after).tie_key, -(p_after).user_key) END,
              p_around, p_limit, v_archive.score_order;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.archive_local_rows(bigint, bigint[], bigint, centile_store.rank_key, bigint, integer) IS
'A page of some players of a closed period, ranked among each other and among all, and the number of these players with a score. Example: SELECT players, rows -> 0 ->> ''user_id'' AS first FROM centile_store.archive_local_rows(4, ''{1,2}'', 1, NULL, NULL, 10);';
