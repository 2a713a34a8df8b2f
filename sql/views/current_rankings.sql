-- A period names its ranking. The rankings of a template's boards follow from the period of the template.
CREATE OR REPLACE VIEW centile_store.current_rankings AS
SELECT g.id, g.board_id, g.players_of, g.period_id
FROM centile_store.rankings g
JOIN centile_store.periods p ON p.id = g.period_id
WHERE p.ranking_id = g.id OR (p.ranking_id IS NOT NULL AND g.players_of <> g.board_id AND g.released_at IS NULL);

COMMENT ON VIEW centile_store.current_rankings IS
'Rankings of periods that are not closed, without those that are being built or were replaced. Example: SELECT id FROM centile_store.current_rankings WHERE players_of = 1;';
GRANT SELECT ON centile_store.current_rankings TO centile_service;
