CREATE OR REPLACE FUNCTION centile_store.erased_in_message(p_payload jsonb, p_old_id text, p_external_id text, p_name text) RETURNS jsonb
LANGUAGE sql IMMUTABLE
AS $$
    SELECT p_payload
        || jsonb_build_object('top', (
            SELECT coalesce(jsonb_agg(CASE WHEN r.row ->> 'user_id' = p_old_id
                                           THEN r.row || jsonb_build_object('user_id', p_external_id, 'name', p_name)
                                           ELSE r.row END ORDER BY r.place), '[]')
            FROM jsonb_array_elements(p_payload -> 'top') WITH ORDINALITY AS r (row, place)))
        || CASE WHEN p_payload ? 'tiers' THEN jsonb_build_object('tiers', (p_payload -> 'tiers') || (
            SELECT jsonb_object_agg(l.list, (
                SELECT coalesce(jsonb_agg(CASE WHEN r.row ->> 'user_id' = p_old_id
                                               THEN r.row || jsonb_build_object('user_id', p_external_id)
                                               ELSE r.row END ORDER BY r.place), '[]')
                FROM jsonb_array_elements(p_payload -> 'tiers' -> l.list) WITH ORDINALITY AS r (row, place)))
            FROM unnest('{promotions,demotions}'::text[]) AS l (list))) ELSE '{}' END
        || CASE WHEN p_payload ? 'league' THEN jsonb_build_object('league', jsonb_set(p_payload -> 'league', '{moves}', (
            SELECT coalesce(jsonb_agg(CASE WHEN r.row ->> 'user_id' = p_old_id THEN r.row || jsonb_build_object('user_id', p_external_id) ELSE r.row END ORDER BY r.place), '[]')
            FROM jsonb_array_elements(p_payload #> '{league,moves}') WITH ORDINALITY AS r (row, place)))) ELSE '{}' END
$$;

COMMENT ON FUNCTION centile_store.erased_in_message(jsonb, text, text, text) IS
'The message of a closed period with another id and name for one player. Example: SELECT centile_store.erased_in_message(''{"top": [{"user_id": "ann", "name": "Ann"}]}'', ''ann'', ''nobody'', ''Nobody'');';
