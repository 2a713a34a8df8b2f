SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(jsonb_agg(jsonb_build_array(p.percentile, p.score) ORDER BY p.percentile), '[]')
        FROM centile_store.percentiles(NULL, $2) p) AS "percentiles!: Json<Vec<(u8, i64)>>",
       (SELECT coalesce(json_agg(row_to_json(h)), '[]') FROM centile_store.histogram(NULL, $2) h) AS "histogram!: Json<Vec<Bar>>"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
