CREATE OR REPLACE FUNCTION centile.version_of(p_ranking_id bigint) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN (SELECT centile_store.version_text(CASE WHEN g.has_bucket_rows THEN centile_store.applied_batches(g.board_id, g.lanes) ELSE centile_store.lane_batches(g.board_id, g.lanes) END)
        FROM centile_store.rankings g WHERE g.id = p_ranking_id);

COMMENT ON FUNCTION centile.version_of(bigint) IS
'The version of a ranking at the applied batches, or at the last ones without bucket rows, as answers by SQL carry it: the epoch and a digest. Example: SELECT centile.version_of(ranking_id) = version AS is_the_same FROM centile.periods WHERE ranking_id IS NOT NULL LIMIT 1;';
GRANT EXECUTE ON FUNCTION centile.version_of(bigint) TO centile_reader;
