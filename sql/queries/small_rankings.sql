SELECT ranking_id AS "ranking_id!", epoch AS "epoch!", read_at AS "read_at!", batches AS "batches!", revision AS "revision!",
       user_ids, rank_keys, tie_keys, external_ids, names, avatars AS "avatars: Vec<Option<String>>"
FROM centile_store.small_rankings($1)
