-- Scores and acts keep the standings up to this user id current, and log them under the ranking.
CREATE OR REPLACE FUNCTION centile_store.filling_windows(p_board_id integer, p_lane smallint)
RETURNS TABLE (period_id bigint, label text, starts_at timestamptz, ends_at timestamptz, ranking_id bigint, standings_up_to bigint)
LANGUAGE sql STABLE
AS $$
    SELECT p.id, p.label, p.starts_at, p.ends_at, f.ranking_id, f.standings_up_to
    FROM centile_store.fillings f
    JOIN centile_store.rankings g ON g.id = f.ranking_id AND g.released_at IS NULL
    JOIN centile_store.periods p ON p.id = g.period_id AND p.state = 'preparing'
    WHERE f.board_id = p_board_id AND f.lane = p_lane
$$;

COMMENT ON FUNCTION centile_store.filling_windows(integer, smallint) IS
'Rolling windows of a board that are being filled, with the user id up to which players of a lane have their standings. Example: SELECT label, standings_up_to FROM centile_store.filling_windows(1, 0::smallint);';
