-- Tops of the closed period are served from these bytes, with the names at the time of the call.
-- Equal rows give equal bytes.
CREATE OR REPLACE FUNCTION centile_store.freeze_top(p_period_id bigint) RETURNS bytea
LANGUAGE sql STABLE
SET timezone = 'UTC'
RETURN (SELECT convert_to(jsonb_build_object('players', p.archive_players, 'rows', (
                   SELECT coalesce(jsonb_agg(to_jsonb(r) - CASE b.ties WHEN 'second' THEN 'reached_at' ELSE 'tiebreak' END ORDER BY r."position"), '[]')
                   FROM centile_store.archive_rows(p_period_id, 1, b.frozen_top_size) r))::text, 'UTF8')
        FROM centile_store.periods p
        JOIN centile_store.boards b ON b.id = p.board_id
        WHERE p.id = p_period_id);

COMMENT ON FUNCTION centile_store.freeze_top(bigint) IS
'The first players of an archive as bytes. Example: SELECT convert_from(centile_store.freeze_top(period_id), ''UTF8'') LIKE ''{"rows": [{%'' AS is_json FROM centile.periods WHERE archive IS NOT NULL;';
