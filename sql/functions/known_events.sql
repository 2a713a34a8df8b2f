CREATE OR REPLACE FUNCTION centile_store.known_events(
    p_boards integer[], p_user_ids bigint[], p_id_users integer[], p_ids text[],
    OUT places integer[], OUT transactions bigint[], OUT quarantined bigint[], OUT standings text[],
    OUT points bigint[], OUT tiebreaks bigint[], OUT reasons text[], OUT times timestamptz[], OUT rules text[], OUT details text[], OUT metadata text[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(i.place), array_agg(k.transaction_id), array_agg(k.quarantine_id), array_agg(s.standings),
           array_agg(coalesce(t.points, q.points)), array_agg(coalesce(t.second_number, t.tiebreak, q.second_number, q.tiebreak)), array_agg(coalesce(t.reason, q.reason)),
           array_agg(k.occurred_at), array_agg(q.rule), array_agg(q.detail), array_agg(coalesce(t.metadata, q.metadata)::text)
    INTO places, transactions, quarantined, standings, points, tiebreaks, reasons, times, rules, details, metadata
    FROM unnest(p_id_users, p_ids) WITH ORDINALITY AS i (user_place, id, place)
    CROSS JOIN LATERAL (SELECT * FROM centile_store.transaction_ids k
                        WHERE k.board_id = p_boards[i.user_place] AND k.user_id = p_user_ids[i.user_place] AND k.external_id = i.id LIMIT 1) k
    LEFT JOIN LATERAL (SELECT * FROM centile_store.score_transactions t
                       WHERE t.id = k.transaction_id AND t.occurred_at = k.occurred_at LIMIT 1) t ON true
    LEFT JOIN LATERAL (SELECT * FROM centile_store.quarantine q WHERE q.id = k.quarantine_id LIMIT 1) q ON true
    CROSS JOIN LATERAL (
        SELECT json_agg(json_build_object('user_id', k.user_id, 'period_id', p.id,
                   'period', CASE p.kind WHEN 'all_time' THEN p.kind ELSE p.kind || ':' || p.label END, 'score', k.standings[n + 1],
                   'was', CASE WHEN k.standings[n + 2] IS NOT NULL THEN ARRAY[k.standings[n + 2], k.standings[n + 3]] END))::text AS standings
        FROM generate_series(1, cardinality(k.standings), 4) AS n
        JOIN centile_store.periods p ON p.id = k.standings[n]) s;
END
$$;

COMMENT ON FUNCTION centile_store.known_events(integer[], bigint[], integer[], text[]) IS
'Events that were written earlier under the same ids. Example: SELECT places FROM centile_store.known_events(''{1}'', ''{1}'', ''{1}'', ''{an id}'');';
