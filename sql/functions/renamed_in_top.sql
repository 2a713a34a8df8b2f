-- All other bytes stay the same: the text of jsonb is the same for the same value.
CREATE OR REPLACE FUNCTION centile_store.renamed_in_top(p_top bytea, p_user_id bigint, p_external_id text, p_name text) RETURNS bytea
LANGUAGE sql IMMUTABLE
AS $$
    SELECT convert_to(jsonb_set(t.top, '{rows}', (
        SELECT jsonb_agg(CASE WHEN (r.row ->> 'internal_id')::bigint = p_user_id
                              THEN r.row || jsonb_build_object('user_id', p_external_id, 'user_name', p_name, 'avatar', NULL)
                              ELSE r.row END ORDER BY r.place)
        FROM jsonb_array_elements(t.top -> 'rows') WITH ORDINALITY AS r (row, place)))::text, 'UTF8')
    FROM (SELECT convert_from(p_top, 'UTF8')::jsonb AS top) t
$$;

COMMENT ON FUNCTION centile_store.renamed_in_top(bytea, bigint, text, text) IS
'A frozen top with another id and name for one player. Example: SELECT convert_from(centile_store.renamed_in_top(frozen_top, 3, ''nobody'', ''Nobody''), ''UTF8'') LIKE ''%"user_name": "Nobody"%'' AS is_renamed FROM centile_store.periods WHERE frozen_top IS NOT NULL ORDER BY id LIMIT 1;';
