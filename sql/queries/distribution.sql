SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(jsonb_agg(jsonb_build_array(p.percentile, p.score) ORDER BY p.percentile), '[]')
        FROM centile_store.percentiles($3, NULL) p) AS "percentiles!: Json<Vec<(u8, i64)>>",
       (SELECT coalesce(json_agg(row_to_json(h)), '[]') FROM centile_store.histogram($3, NULL) h) AS "histogram!: Json<Vec<Bar>>"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
