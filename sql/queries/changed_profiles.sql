SELECT centile.epoch() AS "epoch!", c.revision AS "revision!", c.has_all_profiles AS "has_all_profiles!", c.profile_ids, c.external_ids, c.names,
       c.avatars AS "avatars: Vec<Option<String>>"
FROM centile_store.changed_profiles($1) c
