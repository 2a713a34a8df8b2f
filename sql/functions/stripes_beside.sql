-- Players of a stripe, and of its bucket in higher stripes, added over the lanes; where fewer stripes lie below, the players of the stripe
-- and of lower ones, to be taken from the bucket's. So at most half of the counts are added up. No row where the counts of a
-- lane are gone or not of as many stripes as those of others.
CREATE FUNCTION centile_store.stripes_beside(p_ranking_id bigint, p_bucket smallint, p_stripe integer, p_lanes integer)
RETURNS TABLE (own bigint, players bigint, are_below boolean)
LANGUAGE sql STABLE
AS $$
    SELECT sum(c.counts[p_stripe]),
           coalesce(sum((
               -- In the list of columns, where its elements are not stored before they are added.
               SELECT sum(e.players) FROM (
                   SELECT unnest(CASE WHEN 2 * p_stripe < cardinality(c.counts) THEN c.counts[:p_stripe] ELSE c.counts[p_stripe + 1:] END) AS players) e)), 0)::bigint,
           bool_and(2 * p_stripe < cardinality(c.counts))
    FROM generate_series(0, p_lanes - 1) AS n
    CROSS JOIN LATERAL (
        SELECT c.counts FROM centile_store.stripe_counts c
        WHERE c.ranking_id = p_ranking_id AND c.bucket = p_bucket AND c.lane = n ORDER BY c.revision DESC LIMIT 1) c
    HAVING count(c.counts[p_stripe]) = p_lanes AND min(cardinality(c.counts)) = max(cardinality(c.counts))
$$;

COMMENT ON FUNCTION centile_store.stripes_beside(bigint, smallint, integer, integer) IS
'Players of a stripe, and of its bucket above it, or of the stripe and below it. Example: SELECT * FROM centile_store.stripes_beside(1, 50::smallint, 1, 1);';
