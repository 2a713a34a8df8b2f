SELECT epoch AS "epoch!", read_at AS "read_at!", snapshot, batches AS "batches: Vec<Option<i64>>", revision, ranking_ids, period_ids, has_all_changes, changed_rankings, changed_users,
       rank_keys AS "rank_keys: Vec<Option<i64>>", tie_keys AS "tie_keys: Vec<Option<i64>>", has_all_profiles, profile_ids, external_ids, names,
       avatars AS "avatars: Vec<Option<String>>"
FROM centile_store.read_round($1, $2, $3, $4, $5, $6, $7)
