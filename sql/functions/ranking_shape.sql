-- Rank keys that cut the players of a ranking into up to 100 equal parts, as far as its stripes can tell: what the next period
-- of the kind begins with. None where there are fewer players than parts: a few say nothing of those to come.
CREATE FUNCTION centile_store.ranking_shape(p_ranking_id bigint) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(array_agg(DISTINCT x.rank_key ORDER BY x.rank_key), '{}')
    FROM (SELECT s.rank_key, s.part, s.players, lag(s.part) OVER (ORDER BY s.rank_key, s.tie_key, s.user_key) AS part_below
          FROM (SELECT s.rank_key, s.tie_key, s.user_key, sum(u.players) OVER () AS players,
                       -- Of the hundred parts the one in which the stripe begins.
                       div(100 * (sum(u.players) OVER (ORDER BY s.rank_key, s.tie_key, s.user_key) - u.players),
                           greatest(sum(u.players) OVER (), 1)) AS part
                FROM generate_series(0, 99) AS n
                CROSS JOIN unnest(centile_store.stripe_totals(p_ranking_id, n::smallint)) WITH ORDINALITY AS u (players, place)
                JOIN centile_store.stripes s ON s.ranking_id = p_ranking_id AND s.bucket = n AND s.stripe = u.place) s) x
    -- Nobody is above the hundredth part.
    WHERE x.part > x.part_below AND x.part < 100 AND x.players >= 100 AND x.rank_key > -9223372036854775808
$$;

COMMENT ON FUNCTION centile_store.ranking_shape(bigint) IS
'Rank keys that cut the players of a ranking into equal parts. Example: SELECT centile_store.ranking_shape(1);';
