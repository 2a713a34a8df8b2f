-- The first players of an archive as they are called now, as the bytes that are kept: what a top of the closed period is
-- served from ever after. The text of jsonb is the same for the same rows.
CREATE OR REPLACE FUNCTION centile_store.freeze_top(p_period_id bigint) RETURNS bytea
LANGUAGE plpgsql STABLE
SET timezone = 'UTC'
AS $$
DECLARE
    v_rows jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY r."position"), '[]') INTO v_rows
    FROM centile_store.periods p
    JOIN centile_store.boards b ON b.id = p.board_id
    CROSS JOIN LATERAL centile_store.archive_rows(p.archive_name, b.score_order, 1, b.frozen_top_size) r
    WHERE p.id = p_period_id;
    RETURN convert_to(jsonb_build_object(
        'players', (SELECT p.archive_players FROM centile_store.periods p WHERE p.id = p_period_id),
        'rows', v_rows)::text, 'UTF8');
END
$$;

COMMENT ON FUNCTION centile_store.freeze_top(bigint) IS
'The first players of an archive as bytes. Example: SELECT convert_from(centile_store.freeze_top(period_id), ''UTF8'') LIKE ''{"rows": [{%'' AS is_json FROM centile.periods WHERE archive IS NOT NULL;';
