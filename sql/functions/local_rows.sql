-- Only the rows of the page get a rank among all players. The page begins at place p_from, below
-- the key p_after, or p_limit places above the player p_around, and then ends as many places below.
CREATE OR REPLACE FUNCTION centile_store.local_rows(
    p_ranking_id bigint, p_user_ids bigint[], p_from bigint, p_after centile_store.rank_key, p_around bigint, p_limit integer,
    OUT players bigint, OUT rows json)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_is_shared boolean;
BEGIN
    SELECT b.ties = 'shared' INTO v_is_shared
    FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id WHERE g.id = p_ranking_id;
    WITH local AS MATERIALIZED (
        SELECT w.id AS user_id, l.rank_key, l.tie_key, row_number() OVER best AS place,
               CASE WHEN v_is_shared THEN rank() OVER (ORDER BY l.rank_key DESC) ELSE row_number() OVER best END AS local_rank
        FROM unnest(p_user_ids) AS w (id)
        JOIN LATERAL centile_store.applied_key(p_ranking_id, w.id) l ON l.rank_key IS NOT NULL
        WINDOW best AS (ORDER BY l.rank_key DESC, l.tie_key DESC, w.id)
    ), page AS MATERIALIZED (
        SELECT CASE WHEN p_around IS NOT NULL THEN (SELECT l.place FROM local l WHERE l.user_id = p_around) - p_limit
                    WHEN p_after IS NOT NULL THEN 1 + (
                        SELECT count(*) FROM local l
                        WHERE (l.rank_key, l.tie_key, -l.user_id) >= ((p_after).rank_key, (p_after).tie_key, (p_after).user_key))
                    ELSE p_from END AS first,
               CASE WHEN p_around IS NOT NULL THEN 2 * p_limit + 1 ELSE p_limit END AS size
    )
    SELECT (SELECT count(*) FROM local),
           (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.place), '[]')
            FROM (SELECT l.place, l.local_rank, l.user_id AS internal_id, p.*
                  FROM (SELECT l.* FROM local l, page p WHERE l.place >= p.first AND l.place - p.first < p.size) l
                  CROSS JOIN LATERAL centile_store.player_row(p_ranking_id, l.user_id) p) r)
    INTO players, rows;
END
$$;

COMMENT ON FUNCTION centile_store.local_rows(bigint, bigint[], bigint, centile_store.rank_key, bigint, integer) IS
'A page of some players of a ranking, ranked among each other and among all, and the number of these players with a score. Example: SELECT players, rows -> 0 ->> ''user_id'' AS first FROM centile_store.local_rows(1, ''{1,2}'', 1, NULL, NULL, 10);';
