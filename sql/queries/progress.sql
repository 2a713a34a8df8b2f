SELECT label AS "label!", ends_at AS "ends_at!", players AS "players!", "position", rank, score, reached_at, tier, tiebreak
FROM centile.progress($1, $2, $3)
