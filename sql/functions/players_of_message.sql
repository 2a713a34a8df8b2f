CREATE OR REPLACE FUNCTION centile_store.players_of_message(p_payload jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE
RETURN coalesce(p_payload -> 'top', '[]') || coalesce(p_payload #> '{tiers,promotions}', '[]') || coalesce(p_payload #> '{tiers,demotions}', '[]') || coalesce(p_payload #> '{league,moves}', '[]');

COMMENT ON FUNCTION centile_store.players_of_message(jsonb) IS
'The rows of a message that name players. Example: SELECT centile_store.players_of_message(''{"top": [{"user_id": "ann"}]}'');';
