SELECT "position" AS "position!", rank AS "rank!", user_id AS "user_id!", user_name AS "user_name!",
       score AS "score!", reached_at, tiebreak
FROM centile_store.page_rows($1, $2, $3)
ORDER BY "position"
