CREATE OR REPLACE VIEW centile.leagues AS
SELECT l.name, b.slug AS board, l.kind AS period, l.size, l.divisions, l.promote, l.relegate, l.fill, l.idle, l.ties, l.starts_at, l.created_at,
       l.id AS league_id, l.board_id, l.period_id
FROM centile_store.leagues l
JOIN centile_store.boards b ON b.id = l.board_id
WHERE l.deleted_at IS NULL;

COMMENT ON VIEW centile.leagues IS
'Leagues and their rules. divisions are in their order, lowest first. promote and relegate are the numbers of members of each cohort that move up and down. fill says whether players of a division come together by arrival or by form, idle whether players without a score are relegated, and ties whether players of the same rank count as the best or the worst of them. starts_at is the start of the first period. period_id names the current period, once it is opened. Example: SELECT name, board, period, size, divisions, promote, relegate FROM centile.leagues ORDER BY name;';
GRANT SELECT ON centile.leagues TO centile_reader;
