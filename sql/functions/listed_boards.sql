-- Each call is planned with its values: the order of slugs suits frequent tags, and the index of tags
-- rare ones. Sessions of readers allow no bitmap scans, which that index needs.
CREATE OR REPLACE FUNCTION centile_store.listed_boards(p_tag text, p_after text, p_readable text[], p_limit bigint) RETURNS SETOF text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
SET enable_bitmapscan = on
AS $$
BEGIN
    RETURN QUERY
    SELECT l.slug
    FROM ((SELECT b.slug FROM centile_store.boards b
           WHERE NOT b.is_template AND (p_readable IS NULL OR b.reading = 'public') AND (p_tag IS NULL OR b.tags @> ARRAY[p_tag]) AND b.slug > p_after
           ORDER BY b.slug LIMIT p_limit)
          UNION ALL
          SELECT b.slug FROM centile_store.boards b
          WHERE NOT b.is_template AND b.reading = 'key' AND b.slug = ANY (p_readable) AND (p_tag IS NULL OR b.tags @> ARRAY[p_tag]) AND b.slug > p_after) l
    ORDER BY l.slug
    LIMIT p_limit;
END
$$;

COMMENT ON FUNCTION centile_store.listed_boards(text, text, text[], bigint) IS
'Slugs after p_after of the boards in p_readable and all public boards, or of all boards without p_readable; with p_tag, only of the boards that have this tag. Example: SELECT centile_store.listed_boards(NULL, '''', ''{}'', 10);';
