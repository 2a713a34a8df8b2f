-- Creates the boards of templates whose first events wait in the inbox; a template that is full refuses
-- these events. Refuses events of deleted boards, too, from number p_from.
CREATE OR REPLACE FUNCTION centile_store.create_submitted(p_from bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_slug text;
BEGIN
    FOR v_slug IN SELECT DISTINCT i.slug FROM centile_store.inbox i WHERE i.slug IS NOT NULL ORDER BY i.slug LIMIT 1000 LOOP
        BEGIN
            UPDATE centile_store.inbox i SET board_id = b.id, slug = NULL
            FROM centile_store.ensure_board(v_slug) AS b (id) WHERE i.slug = v_slug;
        EXCEPTION WHEN SQLSTATE 'CB404' OR SQLSTATE 'CB409' THEN
            PERFORM centile_store.settle_inbox('{}', f.numbers, array_fill(CASE sqlstate WHEN 'CB404' THEN 'board_not_found' ELSE 'too_many_boards' END, f.many),
                                               array_fill(sqlerrm, f.many), array_fill(NULL::bigint, f.many))
            FROM (SELECT array_agg(i.number) AS numbers, ARRAY[count(*)::integer] AS many FROM centile_store.inbox i WHERE i.slug = v_slug) f WHERE f.numbers IS NOT NULL;
        END;
    END LOOP;
    -- An empty inbox needs no lock of the boards.
    IF EXISTS (SELECT FROM centile_store.inbox i WHERE i.number >= p_from) THEN
        PERFORM centile_store.settle_inbox('{}', f.numbers, array_fill('board_not_found'::text, f.many), array_fill('the board was deleted'::text, f.many), array_fill(NULL::bigint, f.many))
        FROM (SELECT array_agg(i.number) AS numbers, ARRAY[count(*)::integer] AS many FROM centile_store.inbox i
              WHERE i.number >= p_from AND NOT EXISTS (SELECT FROM centile_store.template_boards t WHERE t.id = i.board_id)
                AND NOT EXISTS (SELECT FROM centile_store.boards b WHERE b.id = i.board_id AND b.deleted_at IS NULL)) f
        WHERE f.numbers IS NOT NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.create_submitted(bigint) IS
'Creates the boards of templates that submitted events name, and refuses events of deleted boards. Example: SELECT centile_store.create_submitted(0);';
