SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.place), '[]')
        FROM centile_store.tier_counts($3, NULL, $6) t) AS "tiers!: Json<Vec<TierCount>>"
FROM centile_store.ranking_state($1, $2, $3, $4, $5) s
