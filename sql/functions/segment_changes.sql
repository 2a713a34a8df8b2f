-- Replaces the look-ups of centile_store.read_round, which would read hundreds of rankings on a
-- board with segments. Looks only into whole periods and the player's present and past segments:
-- other rankings have no entry of the player.
CREATE OR REPLACE FUNCTION centile_store.segment_changes(
    p_board_id integer, p_ranking_ids bigint[], p_period_ids bigint[], p_user_ids bigint[], OUT rank_keys bigint[], OUT tie_keys bigint[])
LANGUAGE plpgsql STABLE
-- The planner expects few rankings and users.
SET enable_nestloop = off
AS $$
BEGIN
    WITH r AS MATERIALIZED (
        SELECT g.id, g.place, p.segment
        FROM unnest(p_ranking_ids, p_period_ids) WITH ORDINALITY AS g (id, period_id, place)
        CROSS JOIN LATERAL (SELECT p.segment FROM centile_store.periods p WHERE p.id = g.period_id LIMIT 1) p
    ), u AS MATERIALIZED (
        SELECT u.id, u.place FROM unnest(p_user_ids) WITH ORDINALITY AS u (id, place)
    ), m AS MATERIALIZED (
        SELECT u.id AS user_id, m.segment
        FROM u CROSS JOIN LATERAL (
            SELECT DISTINCT m.segment FROM centile_store.segment_members m WHERE m.board_id = p_board_id AND m.user_id = u.id OFFSET 0) m
    ), e AS MATERIALIZED (
        SELECT r.id AS ranking_id, m.user_id, l.rank_key, l.tie_key
        FROM m JOIN r ON r.segment = m.segment
        CROSS JOIN LATERAL (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = r.id AND l.user_id = m.user_id LIMIT 1) l
    )
    SELECT array_agg(e.rank_key ORDER BY x.ranking_place, x.user_place), array_agg(e.tie_key ORDER BY x.ranking_place, x.user_place)
    INTO rank_keys, tie_keys
    FROM (SELECT r.id AS ranking_id, u.id AS user_id, r.place AS ranking_place, u.place AS user_place FROM r CROSS JOIN u) x
    LEFT JOIN e ON e.ranking_id = x.ranking_id AND e.user_id = x.user_id;
END
$$;

COMMENT ON FUNCTION centile_store.segment_changes(integer, bigint[], bigint[], bigint[]) IS
'Rank keys of users in rankings of a board with segments, ranking by ranking. Example: SELECT rank_keys FROM centile_store.segment_changes(1, ''{1}'', ''{1}'', ''{1}'');';
