-- The standing of a player, in one round trip and one snapshot. Parameters: those of
-- centile_store.bucket_standings.
SELECT s.external_id, s.name, s.avatar, s.score, s.reached_at, s.tiebreak, s.place, s.counted, s.from_below,
       s.beside_equals, s.is_shared AS "is_shared!", s.epoch, s.batches, s.is_behind AS "is_behind!", s.layout AS "layout!", s.revisions, s.counts,
       NULL::jsonb AS "neighbours: Json<Vec<StoredNeighbour>>"
FROM centile_store.bucket_standings($1, $2, $3, $4, $5, ARRAY[$6], $7, $8) s
