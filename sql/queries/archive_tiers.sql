SELECT s.epoch AS "epoch!", s.players AS "players!", s.revision AS "revision!",
       (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.place), '[]')
        FROM centile_store.tier_counts(NULL, $2, (SELECT p.tiers FROM centile_store.periods p WHERE p.id = centile_store.closed_period($2))) t) AS "tiers!: Json<Vec<TierCount>>"
FROM centile_store.archive_state($1, $2, $3, $4, $5) s
