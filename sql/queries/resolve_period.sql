-- The period that each selector means on its board, and the state of the board, for answers about
-- empty periods.
SELECT w.place AS "place!", r.kind AS "kind!", r.label AS "label!",
       nullif(r.starts_at, '-infinity') AS starts_at, nullif(r.ends_at, 'infinity') AS ends_at,
       r.period_id, r.ranking_id, r.archive_revision, r.state AS "state!",
       nullif(r.valid_from, '-infinity') AS valid_from, nullif(r.valid_until, 'infinity') AS valid_until,
       centile.epoch() AS "epoch!",
       centile_store.lane_batches(b.id, b.lanes) AS "batches!",
       (SELECT v.revision FROM centile_store.profile_revision v) AS "revision!",
       (SELECT jsonb_build_object('as_of', c.as_of, 'sources', centile_store.shown_sources(c.sources))
        FROM centile_store.combinations c WHERE c.board_id = b.id AND c.as_of IS NOT NULL) AS "combined: Json<CombinedFrom>",
       (SELECT p.tiers FROM centile_store.periods p WHERE p.id = centile_store.closed_period(r.period_id)) AS tiers,
       (SELECT g.has_bucket_rows FROM centile_store.rankings g WHERE g.id = r.ranking_id) AS has_bucket_rows
FROM unnest($1::integer[], $2::integer[], $3::text[]) WITH ORDINALITY AS w (board, owner, selector, place)
JOIN centile_store.boards b ON b.id = w.owner
CROSS JOIN LATERAL centile.resolve_period(w.board, w.selector, w.owner) r
ORDER BY w.place
