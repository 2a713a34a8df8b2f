CREATE OR REPLACE FUNCTION centile.version_of(p_ranking_id bigint) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN (SELECT concat_ws('.', centile.epoch(),
            left(encode(sha256(convert_to(array_to_string(centile_store.lane_batches(g.board_id, g.lanes), '-'), 'UTF8')), 'hex'), 16))
        FROM centile_store.rankings g WHERE g.id = p_ranking_id);

COMMENT ON FUNCTION centile.version_of(bigint) IS
'The version of a ranking as answers carry it: epoch and a digest of the lanes'' last batches. Example: SELECT centile.version_of(ranking_id) = version AS is_the_same FROM centile.periods JOIN centile.period_status USING (period_id) WHERE ranking_id IS NOT NULL LIMIT 1;';
GRANT EXECUTE ON FUNCTION centile.version_of(bigint) TO centile_reader;
