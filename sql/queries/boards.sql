SELECT slug AS "slug!", to_jsonb(b)::text AS "rules!",
       (SELECT to_jsonb(c) FROM centile.combinations c WHERE c.board_id = b.board_id) AS "combination: Json<StoredCombination>"
FROM centile.boards b
WHERE slug = ANY (CASE WHEN $1::text IS NULL THEN ARRAY(SELECT centile_store.listed_boards($2, $3, $4, $5)) ELSE ARRAY[$1] END)
ORDER BY slug
