-- Moving rows between buckets would need a transaction over several servers.
CREATE OR REPLACE FUNCTION centile_store.lock_layout(p_ranking_id bigint, p_layout integer, OUT buckets smallint[], OUT bounds centile_store.rank_key[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RAISE EXCEPTION 'layouts of a cluster change only by a rebuild' USING ERRCODE = 'CB409';
END
$$;

COMMENT ON FUNCTION centile_store.lock_layout(bigint, integer) IS
'Locks a ranking''s layout for a change.';
