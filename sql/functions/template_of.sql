-- At most one: centile.set_template refuses patterns that overlap. In plpgsql, which keeps its plan.
CREATE OR REPLACE FUNCTION centile_store.template_of(p_slug text) RETURNS integer
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT b.id FROM centile_store.boards b WHERE b.is_template AND starts_with(p_slug, rtrim(b.slug, '*')));
END
$$;

COMMENT ON FUNCTION centile_store.template_of(text) IS
'The template whose pattern a name of a board matches; NULL without one. Example: SELECT centile_store.template_of(''main'');';
