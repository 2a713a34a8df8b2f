-- As standing.sql, with the number of neighbours above and below as the last parameter. A
-- statement of its own: starting the plan for neighbours takes nearly as long as a rank
-- (docs/benchmarks.md).
SELECT s.external_id, s.name, s.avatar, s.score, s.reached_at, s.tiebreak, s.place, s.counted, s.from_below,
       s.beside_equals, s.is_shared AS "is_shared!", s.epoch, s.batches, s.is_behind AS "is_behind!", s.layout AS "layout!", s.revisions, s.counts,
       (SELECT json_agg(row_to_json(near) ORDER BY near.step)
        FROM centile_store.neighbours($3, s.bucket, s.is_shared, s.score_order, s.key, $9, s.tiebreak_order) near
        WHERE near.step <> 0) AS "neighbours: Json<Vec<StoredNeighbour>>"
FROM centile_store.bucket_standings($1, $2, $3, $4, $5, ARRAY[$6], $7, $8) s
