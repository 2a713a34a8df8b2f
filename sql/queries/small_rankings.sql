SELECT epoch AS "epoch!", read_at AS "read_at!", batches AS "batches!", revision AS "revision!", has_all_changes, changed_ids,
       places, ranking_ids, read_ids, player_rankings, user_ids, rank_keys, tie_keys
FROM centile_store.small_rankings($1, $2, $3, $4, $5, $6)
