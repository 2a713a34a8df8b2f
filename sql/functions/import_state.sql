-- Imported events have their own times, so each needs only the entries of its periods, and the
-- times of the player's resets.
CREATE OR REPLACE FUNCTION centile_store.import_state(
    p_board_id integer, p_user_ids bigint[], p_event_users integer[], p_times timestamptz[], p_at timestamptz,
    p_starts timestamptz[], p_ends timestamptz[], p_rankings bigint[],
    OUT entry_rankings bigint[], OUT entry_users integer[], OUT entry_ctids tid[], OUT rank_keys bigint[], OUT tie_keys bigint[], OUT only_zeros boolean[],
    OUT reset_users integer[], OUT reset_times timestamptz[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(l.ranking_id), array_agg(e.place), array_agg(l.ctid), array_agg(l.rank_key), array_agg(l.tie_key), array_agg(l.only_zeros)
    INTO entry_rankings, entry_users, entry_ctids, rank_keys, tie_keys, only_zeros
    FROM (SELECT DISTINCT e.place, r.id
          FROM unnest(p_event_users, p_times) AS e (place, at)
          JOIN unnest(p_starts, p_ends, p_rankings) AS r (starts_at, ends_at, id)
              ON coalesce(r.starts_at <= coalesce(e.at, p_at), true) AND coalesce(coalesce(e.at, p_at) < r.ends_at, true)) e
    CROSS JOIN LATERAL (SELECT l.ctid, l.* FROM centile_store.leaderboard l
                        WHERE l.ranking_id = e.id AND l.user_id = p_user_ids[e.place] LIMIT 1) l;
    SELECT array_agg(u.place), array_agg(t.occurred_at)
    INTO reset_users, reset_times
    FROM unnest(p_user_ids) WITH ORDINALITY AS u (id, place)
    JOIN centile_store.board_players b ON b.board_id = p_board_id AND b.user_id = u.id AND b.was_reset
    JOIN centile_store.score_transactions t ON t.board_id = p_board_id AND t.user_id = u.id AND t.kind = 'reset';
END
$$;

COMMENT ON FUNCTION centile_store.import_state(integer, bigint[], integer[], timestamptz[], timestamptz, timestamptz[], timestamptz[], bigint[]) IS
'Entries and resets that a batch of imported events begins with. Example: SELECT entry_users FROM centile_store.import_state(1, ''{1}'', ''{1}'', ''{2024-01-16}'', now(), ''{NULL}'', ''{NULL}'', ''{1}'');';
