-- For the message of a period whose archive is built, but which is not closed yet. Each of the two
-- archives has its own tiers. They are matched by name, in the order of the new tiers. A former
-- tier that no longer exists counts as none. The lists hold internal ids. NULL without tiers.
CREATE OR REPLACE FUNCTION centile_store.tier_changes(p_period_id bigint, p_tiers text[], p_limit integer DEFAULT 1000) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET work_mem = '128MB'
AS $$
DECLARE
    v_period  centile_store.periods;
    v_before  centile_store.periods;
    v_names   text[] := ARRAY(SELECT split_part(t.tier, ':', 1) FROM unnest(p_tiers) WITH ORDINALITY AS t (tier, place) ORDER BY t.place);
    v_were    text[];
    v_changes jsonb;
BEGIN
    IF cardinality(p_tiers) = 0 THEN
        RETURN NULL;
    END IF;
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    SELECT * INTO v_before FROM centile_store.periods p
    WHERE p.board_id = v_period.board_id AND p.kind = v_period.kind AND p.segment = v_period.segment AND p.starts_at < v_period.starts_at
      AND p.state = 'closed' AND p.frozen_top IS NOT NULL AND p.tiers <> '{}'
      -- Windows of one length.
      AND (p.kind <> 'rolling' OR split_part(p.label, '-', 1) = split_part(v_period.label, '-', 1))
    ORDER BY p.starts_at DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('since', NULL, 'promoted', 0, 'demoted', 0, 'promotions', '[]'::jsonb, 'demotions', '[]'::jsonb);
    END IF;
    v_were := ARRAY(SELECT split_part(t.tier, ':', 1) FROM unnest(v_before.tiers) WITH ORDINALITY AS t (tier, place) ORDER BY t.place);
    -- The tier of a position is the one after all tiers that end before the position.
    EXECUTE format(
        'WITH changed AS MATERIALIZED (
             SELECT c.user_id, ($4::text[])[c.was] AS was, ($2::text[])[c.now] AS now, c.now < c.was_among AS is_up,
                    row_number() OVER (PARTITION BY c.now < c.was_among ORDER BY c."position", c.was_at) AS n
             FROM (SELECT coalesce(n.user_id, o.user_id) AS user_id, n."position", o."position" AS was_at, x.was, x.now,
                          coalesce(($5::integer[])[x.was], cardinality($2) + 1) AS was_among
                   FROM centile_archive.%I n
                   FULL JOIN centile_archive.%I o ON o.user_id = n.user_id
                   CROSS JOIN LATERAL (SELECT coalesce(width_bucket(o."position" - 1, $3), cardinality($4)) + 1 AS was,
                                              coalesce(width_bucket(n."position" - 1, $1), cardinality($2)) + 1 AS now) x) c
             WHERE c.now <> c.was_among
         ), listed AS (
             SELECT c.is_up, jsonb_agg(jsonb_build_object(''user_id'', c.user_id, ''from'', c.was, ''to'', c.now) ORDER BY c.n) AS users
             FROM changed c WHERE c.n <= $6 GROUP BY c.is_up
         )
         SELECT jsonb_build_object(
             ''promoted'', count(*) FILTER (WHERE c.is_up), ''demoted'', count(*) FILTER (WHERE NOT c.is_up),
             ''promotions'', coalesce((SELECT l.users FROM listed l WHERE l.is_up), ''[]''),
             ''demotions'', coalesce((SELECT l.users FROM listed l WHERE NOT l.is_up), ''[]''))
         FROM changed c', v_period.archive_name, v_before.archive_name)
    INTO v_changes
    USING centile_store.tier_ends(NULL, v_period.id, p_tiers), v_names,
          centile_store.tier_ends(NULL, v_before.id, v_before.tiers), v_were,
          ARRAY(SELECT array_position(v_names, w.name) FROM unnest(v_were) WITH ORDINALITY AS w (name, place) ORDER BY w.place), p_limit;
    RETURN jsonb_build_object('since', v_before.kind || ':' || v_before.label) || v_changes;
END
$$;

COMMENT ON FUNCTION centile_store.tier_changes(bigint, text[], integer) IS
'Players who have risen or fallen to other tiers since the closed period before. Example: SELECT centile_store.tier_changes(4, ''{gold: top 50 %}'');';
