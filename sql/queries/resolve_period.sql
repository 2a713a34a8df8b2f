-- The period that a selector means, and the state of the board, for answers about empty periods.
SELECT r.kind AS "kind!", r.label AS "label!",
       nullif(r.starts_at, '-infinity') AS starts_at, nullif(r.ends_at, 'infinity') AS ends_at,
       r.period_id, r.ranking_id, r.archive_revision, r.state AS "state!",
       nullif(r.valid_from, '-infinity') AS valid_from, nullif(r.valid_until, 'infinity') AS valid_until,
       centile.epoch() AS "epoch!",
       (SELECT centile_store.lane_batches(b.id, b.lanes) FROM centile_store.boards b WHERE b.id = $1) AS "batches!",
       (SELECT v.revision FROM centile_store.profile_revision v) AS "revision!",
       (SELECT jsonb_build_object('as_of', c.as_of, 'sources', centile_store.shown_sources(c.sources))
        FROM centile_store.combinations c WHERE c.board_id = $1 AND c.as_of IS NOT NULL) AS "combined: Json<CombinedFrom>"
FROM centile.resolve_period($1, $2) r
