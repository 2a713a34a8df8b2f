-- A top and several players with their neighbours, all of one state, for subscribers of a ranking.
-- The bucket counts come along if there are players.
SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.position), '[]')
        FROM centile_store.page_rows($3, 1, $6) r) AS "rows!: Json<Vec<StoredRow>>",
       CASE WHEN cardinality($7::text[]) > 0 THEN centile_store.bucket_totals($3) END AS counts,
       (SELECT coalesce(json_agg(row_to_json(p) ORDER BY p.n), '[]')
        FROM (SELECT b.n, b.external_id, b.name, b.avatar, b.score, b.reached_at, b.tiebreak, b.place, b.counted, b.from_below,
                     b.beside_equals, b.is_shared,
                     (SELECT coalesce(json_agg(row_to_json(near) ORDER BY near.step), '[]')
                      FROM centile_store.neighbours($3, b.bucket, b.is_shared, b.score_order, b.key, $8, b.tiebreak_order) near
                      WHERE near.step <> 0) AS neighbours
              FROM centile_store.bucket_standings($1, $2, $3, $4, $5, $7, NULL, NULL) b) p
       ) AS "standings!: Json<Vec<BucketStanding>>"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
