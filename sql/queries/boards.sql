SELECT board_id AS "id!", slug AS "slug!", title AS "title!", mode AS "mode!", score_order AS "score_order!", ties AS "ties!", periods AS "periods!",
       lanes AS "lanes!", time_zone AS "time_zone!", points_min AS "points_min!", points_max AS "points_max!",
       frozen_top_size AS "frozen_top_size!", kept_archives::text AS "kept_archives!", reading AS "reading!",
       events_per_minute, gain_max::text AS "gain_max!", on_violation AS "on_violation!", snapshots, rolling AS "rolling!", tags AS "tags!", score_format AS "score_format!", description, icon_url, colour, tiers AS "tiers!", segments AS "segments!", buckets AS "buckets!", created_at AS "created_at!",
       (SELECT to_jsonb(c) FROM centile.combinations c WHERE c.board_id = b.board_id) AS "combination: Json<StoredCombination>"
FROM centile.boards b
WHERE slug = ANY (CASE WHEN $1::text IS NULL THEN ARRAY(SELECT centile_store.listed_boards($2, $3, $4, $5)) ELSE ARRAY[$1] END)
ORDER BY slug
