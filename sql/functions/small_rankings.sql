-- One round of small rankings (of boards of a template, without bucket rows), in one snapshot: names the
-- rankings that have changed since the instance's last round, and reads the players of those that the
-- instance asks for and does not have. In plpgsql, which keeps its plans.
--
-- p_board_ids, p_period_ids: the rankings that are asked for. p_kept_ids: the id of each as the instance
-- keeps it, or 0. p_epoch, p_batches: the state that all kept rankings have reached, also those that are
-- not asked for.
--
-- places: which of the rankings are current; the board is not deleted. ranking_ids: their ids, 0 for a
-- board without scores. read_ids: those that were read; player_rankings, user_ids, rank_keys and tie_keys
-- have their players. changed_ids: rankings that have changed since p_batches. If has_all_changes is
-- false, the instance forgets all that it keeps.
CREATE OR REPLACE FUNCTION centile_store.small_rankings(
    p_template_id integer, p_board_ids integer[], p_period_ids bigint[], p_kept_ids bigint[], p_epoch text, p_batches bigint[],
    OUT epoch text, OUT read_at timestamptz, OUT batches bigint[], OUT revision bigint,
    OUT has_all_changes boolean, OUT changed_ids bigint[], OUT places integer[], OUT ranking_ids bigint[], OUT read_ids bigint[],
    OUT player_rankings bigint[], OUT user_ids bigint[], OUT rank_keys bigint[], OUT tie_keys bigint[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    epoch := centile.epoch();
    read_at := statement_timestamp();
    SELECT v.revision INTO revision FROM centile_store.profile_revision v;
    -- As centile_store.lane_batches, without a call.
    SELECT ARRAY(SELECT (SELECT l.batch FROM centile_store.board_lanes l WHERE l.board_id = b.id AND l.lane = n ORDER BY l.batch DESC LIMIT 1)
                 FROM generate_series(0, b.lanes - 1) AS n ORDER BY n)
    INTO batches FROM centile_store.boards b WHERE b.id = p_template_id;
    -- Nested loops, however small the tables were when PostgreSQL made the plan.
    SELECT array_agg(r.place), array_agg(coalesce(g.id, 0)) INTO places, ranking_ids
    FROM unnest(p_board_ids, p_period_ids) WITH ORDINALITY AS r (board_id, period_id, place)
    CROSS JOIN LATERAL (SELECT FROM centile_store.template_boards b WHERE b.id = r.board_id AND b.template_id = p_template_id OFFSET 0) b
    CROSS JOIN LATERAL (SELECT FROM centile_store.periods q WHERE q.id = r.period_id AND q.ranking_id IS NOT NULL OFFSET 0) q
    LEFT JOIN LATERAL (SELECT g.id, g.has_bucket_rows FROM centile_store.rankings g
                       WHERE g.period_id = r.period_id AND g.players_of = r.board_id AND g.players_of <> g.board_id AND g.released_at IS NULL OFFSET 0) g ON true
    WHERE g.has_bucket_rows IS NOT TRUE;

    has_all_changes := coalesce(epoch = p_epoch AND cardinality(batches) = cardinality(p_batches), false);
    IF has_all_changes AND batches <> p_batches THEN
        SELECT c.has_all, ARRAY(SELECT DISTINCT e.id FROM unnest(c.ranking_ids) AS e (id) WHERE e.id IS NOT NULL) INTO has_all_changes, changed_ids
        FROM centile_store.logged_changes(p_template_id, NULL, p_batches, batches, 2000, 200000) c;
    END IF;

    read_ids := ARRAY(SELECT r.id FROM unnest(ranking_ids) AS r (id)
                      WHERE r.id <> 0 AND (NOT has_all_changes OR r.id <> ALL (p_kept_ids) OR r.id = ANY (changed_ids)));
    IF read_ids <> '{}' THEN
        SELECT array_agg(r.id), array_agg(p.user_id), array_agg(p.rank_keys[n.place]), array_agg(p.tie_keys[n.place])
        INTO player_rankings, user_ids, rank_keys, tie_keys
        FROM unnest(places, ranking_ids) AS r (place, id)
        CROSS JOIN LATERAL (SELECT * FROM centile_store.players p WHERE p.board_id = p_board_ids[r.place] OFFSET 0) p
        CROSS JOIN LATERAL (SELECT array_position(p.period_ids, p_period_ids[r.place]) AS place OFFSET 0) n
        WHERE r.id = ANY (read_ids) AND n.place IS NOT NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.small_rankings(integer, integer[], bigint[], bigint[], text, bigint[]) IS
'Players and keys of rankings of a template''s boards, and which have changed. Example: SELECT read_ids FROM centile_store.small_rankings(1, ''{2}'', ''{1}'', ''{0}'', NULL, NULL);';
