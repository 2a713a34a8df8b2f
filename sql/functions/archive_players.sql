-- A rank is one more than the players before it, so all players from the next greater rank on are
-- worse.
CREATE OR REPLACE FUNCTION centile_store.archive_players(p_period_id bigint, p_user_ids bigint[])
RETURNS TABLE ("position" bigint, rank bigint, worse bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz, tiebreak bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF FOUND THEN
        RETURN QUERY EXECUTE format(
            'SELECT a."position", a.rank,
                    $2 + 1 - coalesce((SELECT n.rank FROM %1$s n WHERE n.rank > a.rank ORDER BY n.rank LIMIT 1), $2 + 1),
                    u.external_id, u.name, u.avatar, a.score, a.reached_at, %2$s
             FROM %1$s a
             JOIN centile_store.users u ON u.id = a.user_id
             WHERE a.user_id = ANY ($1)
             ORDER BY a."position"', v_archive.source, v_archive.tiebreak)
        USING p_user_ids, v_archive.players;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.archive_players(bigint, bigint[]) IS
'Position, rank and number of worse players of some players of a closed period. Example: SELECT * FROM centile_store.archive_players(4, ''{1,2}'');';
