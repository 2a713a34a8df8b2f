-- How full the buckets of each ranking are.
CREATE VIEW centile.buckets AS
SELECT b.slug AS board, p.kind, p.label, t.place - 1 AS bucket, t.players,
       (SELECT count(*) FROM centile_store.stripes s WHERE s.ranking_id = p.ranking_id AND s.bucket = t.place - 1) AS stripes,
       p.ranking_id
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
CROSS JOIN LATERAL unnest(centile_store.bucket_totals(p.ranking_id)) WITH ORDINALITY AS t (players, place)
WHERE p.ranking_id IS NOT NULL;

COMMENT ON VIEW centile.buckets IS
'Players and stripes in each of the 100 buckets of every open ranking. Example: SELECT bucket, players, stripes FROM centile.buckets WHERE board = ''main'' AND kind = ''all_time'' AND players > 0 ORDER BY bucket DESC;';
GRANT SELECT ON centile.buckets TO centile_reader;
