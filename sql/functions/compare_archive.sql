-- The third step of closing, with the results of a league. Leaves out players whom an act has changed since the cut-off, and in a
-- segment of a closed whole period also those with a later correction. Records up to a thousand
-- differences; the ledger, and so the archive, is right.
CREATE OR REPLACE FUNCTION centile_store.compare_archive(p_period_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '128MB'
SET enable_nestloop = off
AS $$
DECLARE
    v_period      centile_store.periods;
    v_players     bigint;
    v_last_at     timestamptz;
    v_differences bigint;
    v_live        text := 'SELECT l.* FROM centile_store.leaderboard l WHERE l.ranking_id = (SELECT p.ranking_id FROM centile_store.periods p WHERE p.id = $1)';
    v_misplaced   text := 'false';
    v_ties        text;
    v_tiebreak    text := 'NULL::bigint';
    v_later       text := 't.kind <> ''score''';
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' OR v_period.cut_off_at IS NULL THEN
        RAISE EXCEPTION 'the period is closed or not cut off' USING ERRCODE = 'CB409';
    END IF;
    PERFORM centile_store.check_cut_off(v_period) WHERE v_period.segment = '';
    IF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
        RETURN centile_store.sum_closed_boards(v_period);
    END IF;
    -- A snapshot has no live ranking to compare.
    IF v_period.kind = 'snapshot' THEN
        EXECUTE format('SELECT count(*), max(a.reached_at) FROM centile_archive.%I a', v_period.archive_name) INTO v_players, v_last_at;
        UPDATE centile_store.periods SET archive_players = v_players, archive_last_at = v_last_at WHERE id = p_period_id;
        RETURN 0;
    END IF;
    -- The statement finds the ranking itself, because a rebuild may replace it at any moment. Score
    -- and time or second number give the order, except where tiebreaks of 12 bits do. Places shift if
    -- players are left out.
    SELECT b.ties INTO STRICT v_ties FROM centile_store.boards b WHERE b.id = v_period.board_id;
    IF v_ties = 'second' THEN
        v_tiebreak := 'a.tiebreak';
        v_misplaced := 'a.tiebreak IS DISTINCT FROM l.tiebreak';
    ELSIF v_ties = 'tiebreak' THEN
        v_live := 'SELECT l.*, row_number() OVER (ORDER BY l.rank_key DESC, l.tie_key DESC, l.user_id) AS place'
               || ' FROM centile_store.leaderboard l WHERE l.ranking_id = (SELECT p.ranking_id FROM centile_store.periods p WHERE p.id = $1)';
        v_misplaced := 'a."position" <> l.place AND NOT EXISTS (SELECT FROM later)';
    END IF;

    IF v_period.segment <> '' AND v_period.corrected_at IS NOT NULL THEN
        v_later := 't.kind <> ''score'' OR t.occurred_at >= $3 AND t.occurred_at < $4';
    END IF;
    DELETE FROM centile_store.archive_differences WHERE period_id = p_period_id AND revision = 1;
    EXECUTE format($query$
        WITH later AS MATERIALIZED (
            SELECT DISTINCT t.user_id FROM centile_store.score_transactions t
            WHERE t.board_id = $2 AND (%4$s) AND t.batch > (SELECT c.batches[t.lane + 1] FROM centile_store.cut_offs c WHERE c.period_id = $1)
        ), different AS MATERIALIZED (
            SELECT coalesce(a.user_id, l.user_id) AS user_id, a.score, a.reached_at, l.score AS live_score, l.reached_at AS live_reached_at, %5$s AS tiebreak, l.tiebreak AS live_tiebreak
            FROM centile_archive.%1$I a
            FULL JOIN (%2$s) l ON l.user_id = a.user_id
            WHERE (a.score IS DISTINCT FROM l.score OR a.reached_at IS DISTINCT FROM l.reached_at OR (%3$s))
              AND NOT EXISTS (SELECT FROM later WHERE later.user_id = coalesce(a.user_id, l.user_id))
        ), recorded AS (
            INSERT INTO centile_store.archive_differences
                (period_id, revision, user_id, archive_score, archive_reached_at, live_score, live_reached_at, archive_tiebreak, live_tiebreak)
            SELECT $1, 1, d.user_id, d.score, d.reached_at, d.live_score, d.live_reached_at, d.tiebreak, d.live_tiebreak
            FROM different d ORDER BY d.user_id LIMIT 1000
        )
        SELECT x.players, x.last_at, (SELECT count(*) FROM different)
        FROM (SELECT count(*) AS players, max(a.reached_at) AS last_at FROM centile_archive.%1$I a) x
        $query$, v_period.archive_name, v_live, v_misplaced, v_later, v_tiebreak)
    INTO v_players, v_last_at, v_differences
    USING p_period_id, v_period.board_id, v_period.starts_at, v_period.ends_at;

    UPDATE centile_store.periods SET archive_players = v_players, archive_last_at = v_last_at, archive_differences = v_differences WHERE id = p_period_id;
    PERFORM centile_store.rank_cohorts(p_period_id);
    RETURN v_differences;
END
$$;

COMMENT ON FUNCTION centile_store.compare_archive(bigint) IS
'Compares a new archive with the live ranking entry by entry and returns the number of differences. Example: SELECT centile_store.cut_off_period(2) IS NOT NULL AS is_cut_off, centile_store.build_archive(2), centile_store.compare_archive(2);';
