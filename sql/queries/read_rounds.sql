-- A round of several boards in one snapshot. Arrays of arrays must be rectangular in PostgreSQL, so
-- the rankings and batches of each board come as array literals. Only the first row lists changed
-- profiles.
SELECT a.board_id AS "board!",
       r.epoch AS "epoch!", r.read_at AS "read_at!", r.snapshot, r.batches AS "batches: Vec<Option<i64>>", r.revision, r.ranking_ids, r.period_ids, r.has_all_changes, r.changed_rankings, r.changed_users,
       r.rank_keys AS "rank_keys: Vec<Option<i64>>", r.tie_keys AS "tie_keys: Vec<Option<i64>>", r.has_all_profiles, r.profile_ids, r.external_ids, r.names,
       r.avatars AS "avatars: Vec<Option<String>>"
FROM unnest($1::integer[], $2::text[], $3::text[]) WITH ORDINALITY AS a (board_id, ranking_ids, batches, n)
CROSS JOIN LATERAL centile_store.read_round(a.board_id, a.ranking_ids::bigint[], a.batches::bigint[], CASE WHEN a.n = 1 THEN $4::bigint END, $5, $6) r
