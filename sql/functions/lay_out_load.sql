-- Layout, bucket rows and counts of a ranking whose entries a load has written, in place of those that it had while it was empty. Returns
-- the number of players.
CREATE FUNCTION centile_store.lay_out_load(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    DELETE FROM centile_store.stripes WHERE ranking_id = p_ranking_id;
    DELETE FROM centile_store.stripe_counts WHERE ranking_id = p_ranking_id;
    DELETE FROM centile_store.bucket_counts WHERE ranking_id = p_ranking_id;
    UPDATE centile_store.rankings SET layout = layout + 1 WHERE id = p_ranking_id;
    RETURN centile_store.fill_buckets(p_ranking_id);
END
$$;

COMMENT ON FUNCTION centile_store.lay_out_load(bigint) IS
'Lays out a ranking that a load has filled. Example: SELECT centile_store.lay_out_load(p.ranking_id) AS players FROM centile.boards b CROSS JOIN LATERAL centile.open_periods(b.board_id, ''{2030-01-01 12:00Z}'') JOIN centile.periods p ON p.board = b.slug AND p.label = ''2030-01-01'' WHERE b.slug = ''main'';';
