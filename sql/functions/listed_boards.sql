-- Each call is planned with its values: the order of slugs suits frequent tags, and the index of tags
-- rare ones. Sessions of readers allow no bitmap scans, which that index needs.
CREATE OR REPLACE FUNCTION centile_store.listed_boards(p_tag text, p_template text, p_prefix text, p_after text, p_readable text[], p_limit bigint) RETURNS SETOF text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
SET enable_bitmapscan = on
AS $$
DECLARE
    v_rules record;
    v_start text;
BEGIN
    IF p_template IS NOT NULL THEN
        SELECT b.* INTO v_rules FROM centile_store.templates t JOIN centile_store.boards b ON b.id = t.board_id WHERE t.name = p_template;
        v_start := rtrim(v_rules.slug, '*');
        RETURN QUERY
        SELECT n.slug FROM centile_store.template_boards n
        WHERE n.slug ^@ v_start AND (p_prefix = '' OR n.slug ^@ p_prefix) AND n.slug > p_after
          AND (p_readable IS NULL OR v_rules.reading = 'public' OR v_rules.slug = ANY (p_readable) OR n.slug = ANY (p_readable)) AND (p_tag IS NULL OR p_tag = ANY (v_rules.tags))
        ORDER BY n.slug LIMIT p_limit;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT l.slug
    FROM ((SELECT b.slug FROM centile_store.boards b
           WHERE NOT b.is_template AND b.deleted_at IS NULL AND (p_readable IS NULL OR b.reading = 'public') AND (p_tag IS NULL OR b.tags @> ARRAY[p_tag])
             AND b.slug > p_after AND (p_prefix = '' OR b.slug ^@ p_prefix)
           ORDER BY b.slug LIMIT p_limit)
          UNION ALL
          SELECT b.slug FROM centile_store.boards b
          WHERE NOT b.is_template AND b.deleted_at IS NULL AND b.reading = 'key' AND b.slug = ANY (p_readable) AND (p_tag IS NULL OR b.tags @> ARRAY[p_tag])
            AND b.slug > p_after AND (p_prefix = '' OR b.slug ^@ p_prefix)) l
    ORDER BY l.slug
    LIMIT p_limit;
END
$$;

COMMENT ON FUNCTION centile_store.listed_boards(text, text, text, text, text[], bigint) IS
'Slugs of boards after p_after that begin with p_prefix: of p_template, or boards of their own without it. Lists the boards and patterns in p_readable and all public boards, or all boards without p_readable; with p_tag, only those that have this tag. Example: SELECT centile_store.listed_boards(NULL, NULL, '''', '''', ''{}'', 10);';
