CREATE OR REPLACE FUNCTION centile_store.named_changes(p_changes jsonb) RETURNS jsonb
LANGUAGE sql STABLE STRICT
AS $$
    SELECT p_changes || jsonb_object_agg(l.list, (
        SELECT coalesce(jsonb_agg(r.row || jsonb_build_object('user_id', u.external_id) ORDER BY r.place), '[]')
        FROM jsonb_array_elements(p_changes -> l.list) WITH ORDINALITY AS r (row, place)
        JOIN centile_store.users u ON u.id = (r.row ->> 'user_id')::bigint))
    FROM unnest('{promotions,demotions}'::text[]) AS l (list)
$$;

COMMENT ON FUNCTION centile_store.named_changes(jsonb) IS
'Changes of tiers with the players'' own ids. Example: SELECT centile_store.named_changes(''{"promotions": [{"user_id": 1, "from": null, "to": "gold"}], "demotions": []}'');';
