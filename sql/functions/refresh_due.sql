-- On all boards, because an operator has asked for it. The commands and the service do so on boards
-- with the rule refresh_corrected. They alone refresh combined boards. Another process that closes or
-- refreshes is no error: the next call finds what it has left.
CREATE OR REPLACE PROCEDURE centile.refresh_due()
LANGUAGE plpgsql
AS $$
DECLARE
    v_ids  bigint[];
    v_busy boolean := false;
BEGIN
    COMMIT;
    v_ids := ARRAY(SELECT c.period_id FROM centile_store.corrected_archives() c);
    CALL centile_store.refresh_archives(v_ids, NULL, v_busy);
END
$$;

COMMENT ON PROCEDURE centile.refresh_due() IS
'Updates all archives that lack a correction, on all boards: those with needs_refresh in centile.archive_index. Example: CALL centile.refresh_due();';
GRANT EXECUTE ON PROCEDURE centile.refresh_due() TO centile_operator;
