SELECT ranking_id AS "ranking_id!", epoch AS "epoch!", read_at AS "read_at!", batches AS "batches!", revision AS "revision!",
       user_ids, rank_keys, tie_keys
FROM centile_store.small_rankings($1)
