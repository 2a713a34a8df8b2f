-- Rankings of a board with a stripe past twice the target: a look without any lock, before split_stripes takes one.
CREATE FUNCTION centile_store.rankings_to_split(p_board_id integer, p_target integer DEFAULT 400) RETURNS SETOF bigint
LANGUAGE sql STABLE
AS $$
    SELECT DISTINCT x.ranking_id
    FROM (SELECT c.ranking_id
          FROM centile_store.periods p
          JOIN centile_store.stripe_counts c ON c.ranking_id = p.ranking_id
          CROSS JOIN unnest(c.counts) WITH ORDINALITY AS u (players, place)
          WHERE p.board_id = p_board_id
          GROUP BY c.ranking_id, c.bucket, u.place
          HAVING sum(u.players) > 2 * p_target) x
$$;

COMMENT ON FUNCTION centile_store.rankings_to_split(integer, integer) IS
'Rankings with stripes that have grown too large. Example: SELECT centile_store.rankings_to_split(1);';
